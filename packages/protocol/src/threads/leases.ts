/**
 * A lease: the right of one process to run a turn or a task. Taking it is an event that names the holder and has a
 * higher epoch than the one before; an append under an older epoch is refused.
 */
import { HeddleError } from "../errors.ts";
import type { Holder } from "../events/event-parts.ts";
import { defined } from "../defined.ts";

export interface Lease {
  /** The id of the turn, the task or the worker. */
  readonly subject: string;
  /** Of a turn: how often it was taken. Of a task: its attempt. */
  readonly epoch: number;
}

/** A turn is admitted once, and taken by that. */
export const FIRST_EPOCH = 1;

/** The name of a process among all that ever used a store. */
export function ownerOf({ host = "", bootId, pidNamespace, pid, startTicks }: Holder): string {
  return JSON.stringify([host, bootId, pidNamespace, pid, startTicks]);
}

/** The process behind a name. */
export function holderNamed(owner: string): Holder {
  const parts: unknown = JSON.parse(owner);
  const [host = "", bootId = "", pidNamespace = "", pid = "", startTicks = ""] = Array.isArray(parts)
    ? parts.map(String)
    : [];
  return { ...defined({ host: host || undefined }), bootId, pidNamespace, pid: Number(pid), startTicks };
}

/** `current`: the epoch that is valid now; undefined: the turn or task has ended, or has no holder. */
export function leaseLost({ subject, epoch }: Lease, current: number | undefined): HeddleError {
  const what =
    current === undefined ? "it has ended or was given back" : `epoch ${current} was taken by another process`;
  const message = `the lease of ${subject} with epoch ${epoch} is lost: ${what}; nothing more can be recorded under it`;
  const details = { lease: subject, epoch, ...defined({ current }) };
  return new HeddleError("lease.lost", message, { details });
}
