/** A harness under load: 10,000 tasks in the queue and 1,000 in hand. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { openJournal } from "@heddle/journal";
import { TaskSpec } from "@heddle/protocol/tasks";
import { openTasks } from "@heddle/tasks";
import { rolldown } from "rolldown";

const ACTIVE = 1000;
const QUEUED = 10_000;
/** Appends at once; they share a commit. */
const AT_ONCE = 500;
const DEADLINE_MS = 600_000;

export interface TaskFigures {
  /** From the end of one task to the next being taken, durably. */
  readonly claimMs: readonly number[];
  /** From the stored end of a turn to what the task makes of it, stored. */
  readonly reactionMs: readonly number[];
  readonly idleCpuPercent: number;
  readonly peakMb: number;
  /** Turns, and so tokens, that no prompt of a task accounts for. */
  readonly extraTurns: number;
}

export async function measureTasks(root: string): Promise<TaskFigures> {
  const folder = await mkdtemp(join(root, "tasks-"));
  try {
    const home = join(folder, "home");
    await writeTasks(home, folder);
    const worker = await bundle(folder);
    const args = [worker, home, String(ACTIVE)];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: DEADLINE_MS });
    const figures: TaskFigures = JSON.parse(stdout);
    return figures;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** As users run it: what turns TypeScript into JavaScript is no part of a harness, and takes more memory than it. */
async function bundle(folder: string): Promise<string> {
  await using build = await rolldown({
    input: join(import.meta.dirname, "task-load-worker.ts"),
    platform: "node",
    external: [/^node:/],
    resolve: { conditionNames: ["heddle-source", "node", "import", "default"] },
    logLevel: "warn",
  });
  const file = join(folder, "task-load.mjs");
  await build.write({ file, format: "esm", codeSplitting: false, minify: true });
  return file;
}

async function writeTasks(home: string, folder: string): Promise<void> {
  const workspace = join(folder, "workspace");
  await mkdir(workspace);
  await using journal = await openJournal({ home, secrets: [] });
  const tasks = openTasks({ journal }).as("user:owner");
  const spec = TaskSpec.parse({ name: "load", workspace, goal: "g", exclusive: false });
  for (let added = 0; added < ACTIVE + QUEUED; added += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, () => tasks.add({ spec, source: { kind: "cli" } })));
}
