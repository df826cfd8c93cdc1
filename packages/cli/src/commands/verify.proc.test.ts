import { chmod, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { openJournal } from "@heddle/journal";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openWorld, run, type World } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";

async function runOnce(world: World): Promise<string> {
  const script = await world.file("script.json", JSON.stringify([{ text: "It is done." }]));
  const ran = await run(["exec", "--json", "--script", script, "say it"], { world });
  const first: { readonly thread_id: string } = JSON.parse(ran.stdout.split("\n")[0] ?? "");
  return first.thread_id;
}

interface Printed {
  readonly result: string;
  readonly levels: readonly { readonly level: number; readonly examined: number }[];
  readonly findings: readonly { readonly code: string }[];
  readonly running: readonly string[];
}

async function verdict(world: World, ...args: readonly string[]): Promise<Printed & { readonly code: number | null }> {
  const ran = await run(["verify", ...args, "--json"], { world });
  const printed: Printed = JSON.parse(ran.stdout);
  return { ...printed, code: ran.code };
}

test("verify prints what each level examined, and takes the highest one", async () => {
  await using world = await openWorld();
  const id = await runOnce(world);
  const text = (await run(["verify", id], { world })).stdout;
  expect(text).toMatch(/^clean: \d+ events in 1 stream, \d+ checkpoints examined\n/);
  for (const line of ["level 1 chain: ", "level 2 checkpoints: ", "level 3 structure: ", "level 4 envelopes: 1 turn,"])
    expect(text).toContain(line);
  expect((await verdict(world, "--all", "--level", "2")).levels.map(({ level }) => level)).toEqual([1, 2]);
  expect(await verdict(world, id, "--level", "4")).toMatchObject({ code: 0, result: "clean" });
});

test("Verify: nothing_to_verify: a level that was asked for and examined nothing is exit code 3: no lists of files, no checks of a thread", async () => {
  await using world = await openWorld();
  const id = await runOnce(world);
  for (const level of ["5", "6"]) {
    const found = await verdict(world, id, "--level", level);
    expect(found).toMatchObject({ code: 3, result: "cannotVerify", findings: [{ code: "nothing_to_verify" }] });
  }
});

test("Verify: still_running: a thread with an open turn is named as running: exit code 3 for itself, a line in the whole record", async () => {
  await using world = await openWorld();
  const id = await runOnce(world);
  {
    await using journal = await openJournal({ home: world.home });
    const [admitted] = await journal.read({ stream: id, after: 0, types: ["turn.admitted"] });
    if (admitted === undefined) throw new Error("no turn");
    const events: EventBody[] = [{ ...admitted.body, turnId: "open" } as EventBody];
    await journal.append({ stream: id, author: "user:owner", events });
  }
  const one = await run(["verify", id], { world });
  expect(one).toMatchObject({ code: 3, stdout: expect.stringMatching(/^cannot verify: it is still running\n/) });
  expect(one.stdout).toContain(`running: ${id} has not ended; what is stored of it so far was verified`);
  expect(await verdict(world)).toMatchObject({ code: 0, result: "clean", running: [id] });
});

test("wrong arguments are exit code 64 with nothing on standard output", async () => {
  await using world = await openWorld();
  for (const args of [
    ["a", "b"],
    ["a", "--all"],
    ["--level", "7"],
    ["--level", "x"],
    ["--key", "x"],
  ]) {
    const ran = await run(["verify", ...args], { world });
    expect(ran, args.join(" ")).toMatchObject({ code: 64, stdout: "", stderr: expect.stringMatching(/./) });
  }
});

const SPEC = `name: write it
workspace: WORKSPACE
goal: Correct sum.sh.
deliver: [sum.sh]
checks:
  - command: test "$(sh sum.sh 2 3)" = 5 && test "$LANG" != tlh
`;

test(
  "Verify: verdict_differs: a task is verified with the threads of its attempts, its kept files, and on request its checks",
  { timeout: 240_000 },
  async () => {
    await using mock = await openMockWorld({
      respond: ({ answers }) =>
        answers > 0
          ? { text: "It is done." }
          : { calls: [{ tool: "exec_command", args: { cmd: "printf 'echo $(($1 + $2))\n' > sum.sh" } }] },
    });
    const { world } = mock;
    await world.file("workspace/sum.sh", "echo $(($1 - $2))\n");
    await world.file("spec/task.yaml", SPEC.replace("WORKSPACE", world.workspace));
    const ran = await run(["task", "run", `${world.root}/spec/task.yaml`], { world, env: MOCK_KEY });
    const [, id = ""] = /(task_[0-9a-f-]{36})/.exec(ran.stdout) ?? [];
    expect(ran.code, ran.stdout + ran.stderr).toBe(0);
    const kept = await verdict(world, id);
    expect(kept).toMatchObject({ code: 0, result: "clean" });
    expect(kept.levels.findLast(({ level }) => level === 5)?.examined).toBeGreaterThan(0);
    const again = await verdict(world, "write it", "--level", "6");
    expect(again).toMatchObject({ code: 0, result: "clean" });
    expect(again.levels.at(-1)).toMatchObject({ level: 6, examined: 1 });
    // The same check on the same work, and a world that is another.
    const other = await run(["verify", id, "--level", "6", "--json"], { world, env: { LANG: "tlh" } });
    expect({ code: other.code, ...JSON.parse(other.stdout) }).toMatchObject({
      code: 1,
      findings: [
        {
          code: "verdict_differs",
          message: expect.stringMatching(
            /^the verdict was passed and is rejected now; command .*: passed then, failed now/,
          ),
        },
      ],
    });
    // Somebody changes what was kept of the work.
    const rooms = path.join(world.home, "rooms", id);
    const files = await readdir(rooms, { recursive: true }).catch(() => []);
    const work = files.find((name) => name.startsWith("work-") && name.endsWith("sum.sh"));
    expect(work, files.join(", ")).toBeDefined();
    await chmod(path.join(rooms, work ?? ""), 0o600);
    await writeFile(path.join(rooms, work ?? ""), "forged");
    expect(await verdict(world, id)).toMatchObject({ code: 1, findings: [{ code: "unexplained_change" }] });
  },
);
