/**
 * A harness in a process of its own, to be struck. It adds its task, or finds that it is there, and works until nothing moves.
 * Usage: task-worker.ts HOME WORKSPACE KIND [TIME], KIND: work | hops (through three envelopes) |
 * schedule (one time, TIME) | queue (twenty tasks) | quiet
 */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { openHeddle } from "@heddle/agent";
import { openHarness, openTasks } from "@heddle/tasks";
import { TaskSpec, type TaskSpecInput } from "@heddle/protocol/tasks";

const [home = "", workspace = "", kind = "work", time = "0"] = process.argv.slice(2);
const HOUR_MS = 3_600_000;
const QUEUED = 20;

const run = (cmd: string): { tool: string; args: { cmd: string } } => ({ tool: "exec_command", args: { cmd } });
/** A step is played once in a thread, so its effect is seen once. */
const script = [
  { calls: [run("echo first-$(basename $PWD) >> effects.log")] },
  { text: "TASK COMPLETE" },
  { calls: [run("echo second-$(basename $PWD) >> effects.log; touch done.txt")] },
  { calls: [{ tool: "task_report", args: { status: "done", summary: "now it is" } }] },
  { text: "done" },
];

/** Says nothing until somebody lets it go on. */
const quiet = [
  { calls: [run("while [ ! -e go ]; do sleep 0.1; done")] },
  { calls: [run("touch done.txt")] },
  { text: "done" },
];

await using heddle = await openHeddle({
  home,
  providers: [
    { id: "scripted", family: "openai", script },
    { id: "quiet", wire: "scripted", family: "openai", script: quiet },
  ],
  env: process.env,
  isUnattended: false,
});
const tasks = openTasks({ journal: heddle.journal }).as("user:owner");

async function add(name: string, more: Partial<TaskSpecInput> = {}, notBefore?: number): Promise<string> {
  // Every task has a folder of its own, so that several can run at once.
  const folder = path.join(workspace, name);
  await mkdir(folder, { recursive: true });
  const spec = TaskSpec.parse({
    name,
    workspace: folder,
    goal: "make it so",
    checks: [{ kind: "file-exists", path: "done.txt" }],
    ...more,
  });
  const task = await tasks.add({
    spec,
    source: { kind: "cli" },
    key: name,
    ...(notBefore === undefined ? {} : { notBefore }),
  });
  return task.id;
}

/** In each envelope a task may write; the harness takes it on when the agent is done there. */
async function addHopping(): Promise<string> {
  const folder = path.join(home, "envelopes");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const exit = (to: string): string => `extends: edit\nexits: [{ to: ${to}, by: [task], approval: auto }]\n`;
  await writeFile(path.join(folder, "begin.yaml"), exit("middle"));
  await writeFile(path.join(folder, "middle.yaml"), exit("end"));
  await writeFile(path.join(folder, "end.yaml"), "extends: edit\n");
  return await add("hops", { envelope: "begin", hops: [{ to: "middle" }, { to: "end" }] });
}

async function addAll(): Promise<readonly string[]> {
  switch (kind) {
    case "hops":
      return [await addHopping()];
    case "schedule":
      return [await add("nightly", { schedule: { everyMs: HOUR_MS, catchUp: "once" } }, Number(time))];
    case "queue":
      return Promise.all(Array.from({ length: QUEUED }, (_, index) => add(`task-${index}`)));
    case "quiet":
      return [await add("quiet", { provider: "quiet" })];
    default:
      return [await add("work")];
  }
}

const ids = await addAll();
await using harness = await openHarness({
  heddle,
  home,
  concurrency: 3,
  log: (line) => process.stderr.write(`${line}\n`),
  settingsFor: ({ provider, envelope }) => ({
    ...(envelope === undefined ? {} : { envelope }),
    provider: provider ?? "scripted",
    model: "scripted",
    sandboxMode: "workspace-write",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "never",
  }),
});
process.stdout.write("working\n");
/** A busy machine may take long; the test that waits for this process has a limit of its own. */
const deadline = AbortSignal.timeout(80_000);
const watched = kind === "schedule" ? await untilChild() : ids;
const ended = await harness.drained(watched, deadline);
for (const { id, state } of ended) process.stdout.write(`${id} ${state}\n`);
process.exitCode = ended.every(({ state }) => state === "verified") ? 0 : 1;

async function untilChild(): Promise<readonly string[]> {
  const [parentId = ""] = ids;
  for await (const { stream } of heddle.journal.tail({ after: 0, signal: deadline })) {
    if (stream === parentId && (await heddle.journal.tasks.get(parentId))?.nextAt === Number(time)) continue;
    const children = await tasks.page({ parentId, limit: 100 });
    if (children.length > 0) return children.map(({ id }) => id);
  }
  return [];
}
