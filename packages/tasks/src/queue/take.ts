/**
 * Takes a task by one append on the version that was seen, so that only one worker gets it. Tasks of one folder are
 * different streams, so the folder is checked again: of two that were taken at once, the later is given back.
 */
import { defined, hasOwnTree, ownerOf, type Holder, type Lease, type TaskRecord } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { leaseStateOf, thisHolder } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { appendTo } from "./change.ts";

/** undefined: another worker was first, or has the folder. */
export async function take(journal: Journal, task: TaskRecord): Promise<TaskRecord | undefined> {
  const taken = await appendTo(journal, task, {
    author: "system",
    events: [{ type: "task.taken", v: 1, attempt: task.attempt + 1, holder: thisHolder() }],
  });
  if (taken === undefined) return undefined;
  failpoint("task.after-take");
  const rival = await rivalOf(journal, taken);
  if (rival === undefined) return taken;
  const reason = `${rival.id} works in ${rival.folder ?? rival.spec.workspace}`;
  await giveBack(journal, taken, reason, Date.now() + RIVAL_MS);
  return undefined;
}

/** The task is queued again, and its folder is free. */
export async function giveBack(journal: Journal, taken: TaskRecord, reason: string, notBefore?: number): Promise<void> {
  const { attempt } = taken;
  const back = { type: "task.retried", v: 1, attempt, reason, ...defined({ notBefore }) } as const;
  await appendTo(journal, taken, { author: "system", events: [back], lease: leaseOf(taken) });
}

/** The attempt is the epoch: it increases exactly when the task is taken. */
export function leaseOf({ id, attempt }: TaskRecord): Lease {
  return { subject: id, epoch: attempt };
}

/** The rival is seen as the holder of the folder at the next look; this keeps two workers from alternating. */
const RIVAL_MS = 100;

/** Another task that took the same folder before this one. */
async function rivalOf(journal: Journal, task: TaskRecord): Promise<TaskRecord | undefined> {
  const folder = folderOf(task);
  if (folder === undefined) return undefined;
  const inFolder = await journal.tasks.heldIn(folder, { onlyExclusive: !task.spec.exclusive });
  const others = inFolder.filter((other) => other.id !== task.id);
  if (others.length === 0) return undefined;
  const own = await takenAt(journal, task.id);
  for (const other of others) if ((await takenAt(journal, other.id)) < own) return other;
  return undefined;
}

/** undefined: a tree of its own that does not exist yet. */
export function folderOf({ folder, spec }: TaskRecord): string | undefined {
  return folder ?? (hasOwnTree(spec) ? undefined : spec.workspace);
}

async function takenAt(journal: Journal, stream: string): Promise<number> {
  const [taken] = await journal.marks.events({ stream, kinds: ["task.taken"], name: "", newest: 1 });
  return taken?.position ?? Number.POSITIVE_INFINITY;
}

/** Its process has ended, or its lease has expired on another host. */
export async function isAbandoned(journal: Journal, { holder }: TaskRecord): Promise<boolean> {
  return holder !== undefined && (await leaseStateOf(journal, holder)) === "dead";
}

/** Held by this process. */
export function isOurs(holder: Holder): boolean {
  return ownerOf(holder) === ownerOf(thisHolder());
}
