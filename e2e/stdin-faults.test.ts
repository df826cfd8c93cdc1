/**
 * F43 and 12.8a through `heddle exec`: whatever standard input is, a prompt that was given is run, nothing hangs, and what
 * was piped in arrives. With HEDDLE_E2E_FULL=1 it is 200 runs for each delay.
 */
import { spawn } from "node:child_process";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { askServer, figure, jsonLines, openWorld, run } from "./world.ts";

const CLOSED = ["sh", "-c", 'exec "$@" <&-', "sh"];
const MUCH = ["sh", "-c", 'head -c 104857600 /dev/zero | tr "\\0" x | { "$@"; }', "sh"];
const FILE = ["sh", "-c", 'echo "from a file" > "$HOME/input"; exec "$@" < "$HOME/input"', "sh"];
const NULL = ["sh", "-c", 'exec "$@" < /dev/null', "sh"];
/** Opened without waiting for a writer, so that there is none: the read end of a pipe nobody ever wrote. */
const ENDED = ["sh", "-c", 'mkfifo "$HOME/ended"; exec 3<>"$HOME/ended" 4<"$HOME/ended" 3>&-; exec "$@" <&4', "sh"];
/** As Python leaves it: a pipe whose writing end the parent keeps. */
const HELD = ["bash", "-c", 'mkfifo "$HOME/held"; exec 3<>"$HOME/held"; "$@" <"$HOME/held"', "bash"];
const OPEN = ["sh", "-c", 'mkfifo "$HOME/pipe"; exec 3<>"$HOME/pipe"; exec "$@" <&3', "sh"];

test.each([
  ["closed", CLOSED],
  ["/dev/null", NULL],
  ["a pipe whose writers are gone", ENDED],
])("12.8a: standard input that is %s brings nothing and is waited for by nobody", async (_, wrapper) => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  const ran = await run(["exec", "--json", ...askServer(server), "go"], { world, wrapper });
  expect(ran).toMatchObject({ code: 0, stdout: expect.not.stringContaining("input.abandoned") });
  expect(JSON.stringify(server.requests[0]?.body)).not.toContain("<stdin>");
});

test("12.8a: a file as standard input is read to its end", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  expect(await run(["exec", ...askServer(server), "go"], { world, wrapper: FILE })).toMatchObject({ code: 0 });
  expect(JSON.stringify(server.requests[0]?.body)).toContain("from a file");
});

const isFull = process.env["HEDDLE_E2E_FULL"] === "1";
const DELAYS_S = [0, 0.3, 1.5, 4] as const;
const AT_ONCE = 8;
const RUNS_PER_DELAY = isFull ? 200 : 4;

test(
  "12.8a: nothing that is piped in is lost, however late its producer begins and however many run at once under load",
  { timeout: isFull ? 3_600_000 : 120_000 },
  async () => {
    await using world = await openWorld();
    await using server = await startModelServer({ script: [{ text: "ok" }] });
    // A checkout makes its bundle when it is started first; that is not what is measured.
    await run(["--version"], { world, deadlineMs: 120_000 });
    using _load = keepBusy();
    const runs = DELAYS_S.flatMap((delayS) =>
      Array.from({ length: RUNS_PER_DELAY }, (_, index) => ({ delayS, mark: `piped-${delayS}-${index}-end` })),
    );
    const waiting = [...runs];
    const failed: string[] = [];
    async function work(): Promise<void> {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const { delayS, mark } = next;
        const wrapper = ["sh", "-c", `{ sleep ${delayS}; echo ${mark}; } | "$@"`, "sh"];
        const ran = await run(["exec", ...askServer(server), "go"], { world, wrapper, deadlineMs: 60_000 });
        if (ran.code !== 0) failed.push(`${mark}: ${ran.code} ${ran.stderr}`);
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    const asked = JSON.stringify(server.requests.map(({ body }) => body));
    const lost = runs.filter(({ mark }) => !asked.includes(mark)).map(({ mark }) => mark);
    figure(`standard input: ${runs.length} runs, ${AT_ONCE} at once under load, ${lost.length} lost`);
    expect({ failed, lost }).toEqual({ failed: [], lost: [] });
  },
);

/** Both cores have something to do besides. */
function keepBusy(): Disposable {
  const children = [1, 2].map(() => spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }));
  return { [Symbol.dispose]: () => void children.map((child) => child.kill("SIGKILL")) };
}

test.each([
  ["held open by the program that started the run", HELD],
  ["an open pipe with no writer", OPEN],
])("F43 standard input that is %s does not hold up a prompt", async (_, wrapper) => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  const ran = await run(["exec", "--json", ...askServer(server), "go"], { world, wrapper });
  expect(ran).toMatchObject({ code: 0 });
  expect(jsonLines(ran.stdout)).toContainEqual(
    expect.objectContaining({ item: expect.objectContaining({ type: "error", code: "input.abandoned" }) }),
  );
  expect(jsonLines(ran.stdout).at(-1)).toMatchObject({ type: "turn.completed" });
  expect(JSON.stringify(server.requests[0]?.body)).not.toContain("<stdin>");
});

test("F43 a terminal as standard input is not read when there is a prompt, and a prompt is asked for when there is none", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  const inTerminal = (...args: readonly string[]): ReturnType<typeof run> => {
    const words = ["exec", ...askServer(server), ...args].map((word) => `'${word}'`).join(" ");
    const wrapper = ["sh", "-c", `exec script -qec "$1 $2 ${words.replaceAll('"', '\\"')}" /dev/null`, "sh"];
    return run([], { world, wrapper });
  };
  const ran = await inTerminal("go");
  expect(ran).toMatchObject({ code: 0, stdout: expect.stringContaining("ok") });
  expect(server.requests).toHaveLength(1);
  expect(await inTerminal()).toMatchObject({ code: 2, stdout: expect.stringContaining("give a prompt") });
});

test("F43 100 MB on standard input is refused with the way out, before anything is asked", async () => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  const ran = await run(["exec", "--json", ...askServer(server), "go", "-"], { world, wrapper: MUCH });
  expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining("over 8 MiB; put it in a file") });
  expect(server.requests).toHaveLength(0);
});
