/** Before the first prompt: the folder, the thread and the baseline. */
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { hasEnded, HeddleError, reasonOf, type TaskBaseline } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { awaitTerminal, type StartWatch } from "@heddle/agent";
import { requireOwnFolder } from "@heddle/tools";
import type { HarnessContext } from "./attempt.ts";
import type { Hold } from "./hold.ts";
import { baseFolder, roomsOf, roomsRoot } from "../judge/task-rooms.ts";
import { replace } from "../open-tasks.ts";
import { readKeptTree } from "../tree/keep-tree.ts";
import type { Past } from "./past.ts";
import { findFolder, readBaseline } from "./work.ts";

export interface Prepared {
  readonly threadId: string;
  readonly folder: string;
  readonly baseline: TaskBaseline;
}

export interface Known extends Past {
  readonly signal: AbortSignal;
  readonly watch: StartWatch;
}

export async function prepare(context: HarnessContext, hold: Hold, known: Known): Promise<Prepared> {
  const { task } = hold;
  known.watch.step("find the folder, or make the worktree");
  // The folder that was meant when the task was added, not what the path leads to by now.
  requireOwnFolder(task.spec.workspace);
  await settlePuts(context, hold, known);
  const folder = task.folder ?? (await findFolder(context, hold, known.signal));
  await requireFolder(folder);
  known.watch.step("find the thread");
  const threadId = await threadFor(context, hold, folder);
  const { signal } = known;
  const standing = await usable(context, hold, known);
  if (standing !== undefined && task.threadId === threadId && task.folder === folder)
    return { threadId, folder, baseline: standing };
  const baseline = standing ?? (await readBaseline({ context, hold, folder, signal }, known.watch));
  signal.throwIfAborted();
  await hold.append({
    type: "task.prepared",
    v: 1,
    attempt: task.attempt,
    threadId,
    folder,
    ...(standing === undefined ? { baseline } : {}),
  });
  failpoint("task.after-prepare");
  return { threadId, folder, baseline };
}

/**
 * Waits for an undo that is under way, so that no half-changed workspace is copied or frozen. What a dead process began is
 * finished first.
 */
async function settlePuts({ home }: HarnessContext, { task }: Hold, { signal, watch }: Known): Promise<void> {
  if (!existsSync(roomsRoot(home))) return;
  const { claimFolder } = await import("../tree/put-back.ts");
  watch.step("wait for what is being put into the workspace");
  await using _claim = await claimFolder(task.spec.workspace, { dir: roomsOf(home, task.id), signal });
}

/**
 * The one whose copy is in this home. Where there is none and the agent is to continue, a new one is taken: the copy was
 * removed, or another machine has it.
 */
async function usable(
  { home }: HarnessContext,
  { task }: Hold,
  { baselines, next }: Known,
): Promise<TaskBaseline | undefined> {
  const [first] = baselines;
  if (first === undefined || first.kept === undefined) return first;
  const folder = baseFolder(home, task.id);
  if (existsSync(folder)) {
    // Of several, one is of another home.
    if (baselines.length === 1) return first;
    const here = (await readKeptTree(folder).catch(() => undefined))?.sha256;
    const own = baselines.find(({ kept }) => kept?.sha256 === here);
    if (own !== undefined) return own;
  }
  return next.kind === "prompt" || next.kind === "turn" ? undefined : first;
}

async function requireFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() !== true)
    throw new HeddleError("workspace.missing", `the workspace ${path} is not a folder`);
}

/** The one it had, the one it was given, or a new one. A given thread is never replaced. */
async function threadFor({ heddle }: HarnessContext, { task }: Hold, folder: string): Promise<string> {
  const { thread } = task.spec;
  const wanted = task.threadId ?? thread;
  if (wanted !== undefined && (await heddle.journal.threads.get(wanted)) !== undefined) return wanted;
  if (thread !== undefined) {
    const message = `thread ${thread} no longer exists; give another, or none to begin a new one`;
    throw new HeddleError("thread.not-found", message);
  }
  return heddle.as("system").createThread({ workspace: folder, origin: `task:${task.id}`, title: task.spec.name });
}

/**
 * Resolves when nothing else runs in the thread. With `abort` the running turn is stopped and earlier tasks of the thread
 * are cancelled; otherwise the turn is waited for.
 */
export async function clearThread(
  context: HarnessContext,
  hold: Hold,
  prepared: Prepared,
  signal: AbortSignal,
): Promise<void> {
  const { journal } = context.heddle;
  const { task } = hold;
  const isTakeOver = task.spec.abort && task.round <= 1;
  if (isTakeOver) {
    const earlier = (await journal.tasks.ofThread(prepared.threadId)).filter(
      (other) => other.id !== task.id && other.createdAt <= task.createdAt && !hasEnded(other),
    );
    for (const { id } of earlier) await replace(journal, id, task.id);
  }
  const open = await journal.threads.lastTurn(prepared.threadId);
  if (open?.status !== "open") return;
  if (isTakeOver) {
    // A turn that ends by itself at this moment is fine.
    const reason = { code: "turn.interrupted", message: `task ${task.id} takes over` } as const;
    await context.heddle
      .as("system")
      .interrupt(open.id, reason)
      .catch((error: unknown) => context.log(`${task.id}: ${reasonOf(error)}`));
  } else {
    const message = `waits for turn ${open.id} of its thread`;
    await hold.append({ type: "task.waited", v: 1, cause: "workspace", message });
  }
  await awaitTerminal(journal, prepared.threadId, open.id, open.admittedVersion, signal);
  if (hold.task.state === "waiting") await hold.append({ type: "task.woken", v: 1 });
}

/** Another client may begin a turn in the thread first; more often than this is a fault. */
const MAX_CLEARINGS = 10;

/** Ends every process of the agent, in the foreground and the background. */
export async function endProcesses(
  context: HarnessContext,
  hold: Hold,
  prepared: Prepared,
  signal: AbortSignal,
): Promise<void> {
  for (let tries = 1; tries <= MAX_CLEARINGS; tries += 1) {
    await clearThread(context, hold, prepared, signal);
    if (await context.heddle.endCommands(prepared.threadId)) return;
  }
  throw new HeddleError("turn.active", `thread ${prepared.threadId} is always busy with other turns`);
}
