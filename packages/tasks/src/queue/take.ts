/**
 * Takes a task by one append on the version that was seen, so that only one worker gets it. Tasks of one folder are
 * different streams, so the append carries a guard: of two that exclude each other one is taken.
 */
import {
  defined,
  hasOwnTree,
  isHeddleError,
  ownerOf,
  type Holder,
  type Lease,
  type TaskRecord,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { leaseStateOf, thisHolder } from "@heddle/agent";
import type { AppendGuard, Journal, TicketName } from "@heddle/journal";
import { appendTo } from "./change.ts";

/** Why this worker does not have it. */
export type NotTaken = "changed" | "folder-busy";

/** `ticket`: it is done with this, or delivered again. */
export async function take(journal: Journal, task: TaskRecord, ticket?: TicketName): Promise<TaskRecord | NotTaken> {
  const folder = folderOf(task);
  const guard = folder === undefined ? undefined : guardOf(folder, task);
  try {
    const taken = await appendTo(journal, task, {
      author: "system",
      events: [{ type: "task.taken", v: 1, attempt: task.attempt + 1, holder: thisHolder() }],
      ...defined({ guard, ticket }),
    });
    if (taken === undefined) return "changed";
    failpoint("task.after-take");
    return taken;
  } catch (error) {
    if (isHeddleError(error) && error.code === "task.folder-busy") return "folder-busy";
    throw error;
  }
}

function guardOf(folder: string, { spec }: TaskRecord): AppendGuard {
  return { kind: "folder-free", folder, isExclusive: spec.exclusive };
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

/** undefined: a tree of its own that does not exist yet. */
export function folderOf({ folder, spec }: TaskRecord): string | undefined {
  return folder ?? (hasOwnTree(spec) ? undefined : spec.workspace);
}

/** Its process has ended, or its lease has expired on another host. */
export async function isAbandoned(journal: Journal, { holder }: TaskRecord): Promise<boolean> {
  return holder !== undefined && (await leaseStateOf(journal, holder)) === "dead";
}

/** Held by this process. */
export function isOurs(holder: Holder): boolean {
  return ownerOf(holder) === ownerOf(thisHolder());
}
