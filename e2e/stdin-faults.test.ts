/** F43 through `heddle exec`: whatever standard input is, a prompt that was given is run, and nothing hangs. */
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { askServer, jsonLines, openWorld, run } from "./world.ts";

const CLOSED = ["sh", "-c", 'exec "$@" <&-', "sh"];
const MUCH = ["sh", "-c", 'head -c 104857600 /dev/zero | tr "\\0" x | { "$@"; }', "sh"];
const OPEN = ["sh", "-c", 'mkfifo "$HOME/pipe"; exec 3<>"$HOME/pipe"; exec "$@" <&3', "sh"];

test.each([
  ["closed", CLOSED],
  ["an open pipe with no writer", OPEN],
])("F43 standard input that is %s does not hold up a prompt", async (_, wrapper) => {
  await using world = await openWorld();
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  const ran = await run(["exec", "--json", ...askServer(server), "go"], { world, wrapper });
  expect(ran).toMatchObject({ code: 0 });
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
