/** `heddle worker` and `heddle cluster`: several processes at one store, by what is said at the terminal and on record. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { openJournal } from "@heddle/journal";
import { expect, test } from "vitest";
import { run, start, type Running, type World } from "../../test/heddle-process.ts";
import { MOCK_KEY, openMockWorld } from "../../test/mock-model.ts";
import { startServe } from "../../test/serve-client.ts";

const shell = (cmd: string) => ({ calls: [{ tool: "exec_command", args: { cmd, yield_time_ms: 60_000 } }] });
const SLOW = "echo begun >> effects; while [ ! -e go ]; do sleep 0.05; done; echo late >> effects";
const task = (name: string, more = "", folder = ".") =>
  `name: ${name}\nworkspace: ${folder}\ngoal: make ${name}.txt\nchecks: [{file-exists: ${name}.txt}]\n${more}`;

const worker = async (world: World, name: string, ...args: readonly string[]): Promise<Running> => {
  const running = start(["worker", "--name", name, ...args], { world, env: MOCK_KEY });
  await running.sees(`${name} takes tasks`);
  return running;
};

interface Row {
  readonly kind: string;
  readonly id?: string;
  readonly name: string;
  readonly state?: string;
  readonly tasks?: readonly string[];
  readonly taskId?: string;
}

async function status(world: World): Promise<readonly Row[]> {
  const { stdout, stderr } = await run(["cluster", "status", "--json"], { world });
  expect(stderr).toBe("");
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Row => JSON.parse(line));
}

const add = async (world: World, file: string): Promise<string> =>
  JSON.parse((await run(["task", "add", file, "--json"], { world })).stdout).id;
const verified = (world: World, id: string) => run(["task", "log", id, "--follow"], { world, withinMs: 60_000 });

test("19.4: a task goes to a worker that has what it needs; a fenced worker stops by a code, and its task is done by another", async () => {
  await using mock = await openMockWorld({
    respond: ({ body }) => {
      const asked = JSON.stringify(body);
      if (!asked.includes("make heavy.txt"))
        return asked.includes("function_call_output") ? { text: "Done." } : shell("touch light.txt");
      return asked.includes("begins anew") || existsSync(path.join(mock.world.workspace, "effects"))
        ? asked.includes("touch heavy.txt")
          ? { text: "Done." }
          : shell("touch heavy.txt")
        : shell(SLOW);
    },
  });
  const { world } = mock;
  await world.file("workspace/heavy.yaml", task("heavy", "needs: [gpu]\npriority: 9\n"));
  await world.file("workspace/other/light.yaml", task("light"));
  const heavy = await add(world, "heavy.yaml");
  const light = await add(world, "other/light.yaml");
  expect(await status(world)).toMatchObject([{ kind: "unmatched", taskId: heavy, needs: ["gpu"] }]);
  // A server beside them has doors and takes no task.
  await using served = await startServe(world, { args: ["--role", "server", "--name", "door"], env: MOCK_KEY });
  await using plain = await worker(world, "plain");
  expect((await verified(world, light)).stdout).toContain("VERIFIED");
  expect(await status(world)).toMatchObject([
    { kind: "worker", name: "door", state: "ready", role: "server", concurrency: 0 },
    { kind: "worker", name: "plain", state: "ready", role: "worker", labels: [], tasks: [] },
    { kind: "unmatched", taskId: heavy },
  ]);

  await using first = await worker(world, "first", "--label", "gpu");
  const effects = path.join(world.workspace, "effects");
  await expect.poll(() => existsSync(effects), { timeout: 30_000 }).toBe(true);
  await using second = await worker(world, "second", "--log", "json", "--label", "gpu", "--label", "big");
  expect(await status(world)).toMatchObject([
    { name: "door", tasks: [] },
    { name: "plain", tasks: [] },
    { name: "first", tasks: [heavy] },
    { name: "second", tasks: [], labels: ["gpu", "big"] },
  ]);
  const fenced = await run(["cluster", "fence", "first", "--reason", "its disk fails"], { world });
  expect(fenced).toMatchObject({ code: 0, stdout: expect.stringContaining("first is fenced") });
  const ended = await first.ended;
  expect(ended).toMatchObject({ code: 8, stderr: expect.stringContaining("first was fenced: its disk fails") });
  expect((await verified(world, heavy)).stdout).toContain("VERIFIED");
  await world.file("workspace/go", "");

  expect(await run(["cluster", "fence", "first"], { world })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("no worker is called first; see: heddle cluster status"),
  });
  const drained = await run(["cluster", "drain", "plain", "--json"], { world });
  expect(JSON.parse(drained.stdout)).toMatchObject({ name: "plain", verb: "drain", isDone: true });
  expect(await plain.ended).toMatchObject({ code: 0, stderr: expect.stringContaining("plain drains") });
  second.child.kill("SIGTERM");
  const left = await second.ended;
  const logged = left.stderr.trimEnd().split("\n");
  expect([left.code, logged.map((line) => (JSON.parse(line) as { event: string }).event)]).toEqual([
    0,
    expect.arrayContaining(["note", "task.taken", "turn.admitted", "turn.completed", "task.verified"]),
  ]);
  await run(["cluster", "drain", "door"], { world });
  expect(await served.running.ended).toMatchObject({ code: 0 });
  expect((await run(["cluster", "status"], { world })).stdout).toContain("start one with: heddle worker");

  await using journal = await openJournal({ home: world.home });
  const events = await journal.read({ after: 0 });
  const fence = events.find(({ body }) => body.type === "worker.fenced");
  const ofTask = events.filter(({ stream }) => stream === heavy);
  expect(ofTask.filter(({ body }) => body.type === "task.verified")).toHaveLength(1);
  // Whoever sees it first takes it over; one without the label gives it back at once.
  const taken = ofTask.filter(({ body }) => body.type === "task.taken").map(({ position }) => position);
  expect(taken.length).toBeGreaterThan(1);
  expect(Math.min(...taken.slice(1))).toBeGreaterThan(fence?.position ?? Number.POSITIVE_INFINITY);
  // Its sandbox went with it: what its command would have done later is not done.
  expect(await readFile(effects, "utf8")).toBe("begun\n");
  expect((await journal.verify()).damage).toEqual([]);
  expect((await journal.replay()).findings ?? []).toEqual([]);
});
