/**
 * Puts a workspace back to its baseline, or verified work into it. Killed before the intent is on disk, nothing has changed;
 * killed later, `resumePutting` brings it to its end: never anything between. Content, modes, times, links, empty folders and
 * odd names come back; a pipe, a socket or a device that is gone does not.
 */
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Change, FrozenWork, KeptTree } from "./manifest.ts";
import { completePicks } from "./picked-changes.ts";
import { foldersWithIntents, isOwned, readIntent, removeIntent, writeIntent, type Intent } from "./put-intent.ts";
import { findUndo, undoIntent, workIntent } from "./put-plan.ts";
import { carryOut, requireStored } from "./put-steps.ts";

export interface PutOptions {
  /** Of the task: the intent is kept here. */
  readonly dir: string;
  readonly signal: AbortSignal;
}

/** What an undo would take back: the workspace against its baseline. */
export async function planUndo(
  folder: string,
  base: KeptTree,
  options: { readonly skip: readonly string[]; readonly signal: AbortSignal },
): Promise<readonly Change[]> {
  return (await findUndo(folder, base, options)).changes;
}

/** Exactly as it was kept; returns what was taken back. What the baseline was kept without is left alone. */
export async function putBack(
  folder: string,
  base: KeptTree,
  options: PutOptions & { readonly skip?: readonly string[] },
): Promise<readonly Change[]> {
  await takePlace(options);
  const plan = await findUndo(folder, base, { skip: [...(options.skip ?? []), options.dir], signal: options.signal });
  await perform(await undoIntent(plan, base, options.signal), options);
  return plan.changes;
}

/** `task.rejected` when the folder is not as the baseline where the work goes; nothing has changed then. */
export async function putWork(
  folder: string,
  frozen: FrozenWork,
  picked: readonly Change[],
  options: PutOptions & { readonly base: KeptTree },
): Promise<void> {
  await takePlace(options);
  const { base, signal } = options;
  const changes = completePicks(base.manifest, frozen.changes, picked);
  await perform(await workIntent(folder, changes, { base, from: frozen.folder, signal }), options);
}

/** Finishes what dead processes left, for every task; returns the workspaces. */
export async function resumePutting(roomsFolder: string, signal: AbortSignal): Promise<readonly string[]> {
  const finished: string[] = [];
  for (const dir of foldersWithIntents(roomsFolder)) {
    const folder = await finishEarlier({ dir, signal });
    if (folder !== undefined) finished.push(folder);
  }
  return finished;
}

/** Of this process: these are on their way. */
const active = new Set<string>();

/** Two at once would undo each other. */
async function takePlace(options: PutOptions): Promise<void> {
  await finishEarlier(options);
  if (!active.has(options.dir) && readIntent(options.dir) === undefined) return;
  throw new HeddleError(
    "store.busy",
    `another process is changing the workspace of ${options.dir}; retry when it is done`,
  );
}

async function finishEarlier({ dir, signal }: PutOptions): Promise<string | undefined> {
  const intent = active.has(dir) ? undefined : readIntent(dir);
  if (intent === undefined || isOwned(intent)) return undefined;
  await carryOut(intent, { isResumed: true, signal });
  removeIntent(dir);
  return intent.folder;
}

async function perform(intent: Intent, { dir, signal }: PutOptions): Promise<void> {
  if (intent.steps.length === 0 && intent.times.length === 0 && intent.finals.length === 0) return;
  await requireStored(intent, signal);
  signal.throwIfAborted();
  active.add(dir);
  try {
    failpoint("tree.before-intent");
    writeIntent(dir, intent);
    failpoint("tree.after-intent");
    // From here on it goes to its end: a workspace that is half of each is nobody's wish.
    await carryOut(intent, { isResumed: false, signal: new AbortController().signal });
    failpoint("tree.before-put-end");
    removeIntent(dir);
  } finally {
    active.delete(dir);
  }
}
