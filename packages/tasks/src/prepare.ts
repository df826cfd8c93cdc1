/** Before the first prompt: the folder is there, the thread is there, and how things stood is on record. */
import { stat } from "node:fs/promises";
import { HeddleError, hasEnded, type TaskBaseline } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { awaitTerminal, type StartWatch } from "@heddle/agent";
import { requireOwnFolder } from "@heddle/tools";
import type { Workshop } from "./attempt.ts";
import type { Hold } from "./hold.ts";
import { replace } from "./open-tasks.ts";
import { findFolder, lookAround } from "./work.ts";

export interface Place {
  readonly threadId: string;
  readonly folder: string;
  readonly baseline: TaskBaseline;
}

export async function prepare(
  shop: Workshop,
  hold: Hold,
  known: { readonly baseline: TaskBaseline | undefined; readonly signal: AbortSignal; readonly watch: StartWatch },
): Promise<Place> {
  const { task } = hold;
  known.watch.step("find the folder, or make the worktree");
  // The folder that was meant when the task was added, not what its name leads to by now.
  requireOwnFolder(task.spec.workspace);
  const folder = task.folder ?? (await findFolder(shop, hold, known.signal));
  await requireFolder(folder);
  known.watch.step("find the thread");
  const threadId = await threadFor(shop, hold, folder);
  const { baseline: standing, signal } = known;
  if (standing !== undefined && task.threadId === threadId && task.folder === folder)
    return { threadId, folder, baseline: standing };
  known.watch.step("run the checks as they are before the work");
  const baseline = standing ?? (await lookAround({ shop, hold, folder, signal }));
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

async function requireFolder(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() !== true)
    throw new HeddleError("workspace.missing", `the workspace ${path} is not a folder`);
}

/** The one it had, the one it was given, or a new one. One that was given is never exchanged for another. */
async function threadFor({ heddle }: Workshop, { task }: Hold, folder: string): Promise<string> {
  const { thread } = task.spec;
  const wanted = task.threadId ?? thread;
  if (wanted !== undefined && (await heddle.journal.threads.get(wanted)) !== undefined) return wanted;
  if (thread !== undefined) {
    const message = `thread ${thread} no longer exists; give another, or none to begin a new one`;
    throw new HeddleError("thread.not-found", message);
  }
  return heddle.createThread({ workspace: folder, origin: `task:${task.id}`, title: task.spec.name });
}

/**
 * Nothing else runs in the thread when this resolves. With `abort` what runs there is stopped and earlier tasks of the
 * thread are ended, before anything is said; otherwise it is waited for.
 */
export async function clearThread(shop: Workshop, hold: Hold, place: Place, signal: AbortSignal): Promise<void> {
  const { journal } = shop.heddle;
  const { task } = hold;
  const isTakeOver = task.spec.abort && task.round <= 1;
  if (isTakeOver) {
    const earlier = (await journal.tasks.ofThread(place.threadId)).filter(
      (other) => other.id !== task.id && other.createdAt <= task.createdAt && !hasEnded(other),
    );
    for (const { id } of earlier) await replace(journal, id, task.id);
  }
  const open = (await journal.threads.turns(place.threadId)).findLast(({ status }) => status === "open");
  if (open === undefined) return;
  if (isTakeOver) {
    // One that ends by itself at this moment is as good.
    const words = { code: "turn.interrupted", message: `task ${task.id} takes over` } as const;
    await shop.heddle.interrupt(open.id, words).catch((error: unknown) => shop.log(`${task.id}: ${String(error)}`));
  } else {
    const message = `waits for turn ${open.id} of its thread`;
    await hold.append({ type: "task.waited", v: 1, cause: "workspace", message });
  }
  await awaitTerminal(journal, place.threadId, open.id, open.admittedVersion, signal);
  if (hold.task.state === "waiting") await hold.append({ type: "task.woken", v: 1 });
}
