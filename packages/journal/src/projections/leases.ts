/** One row for each held turn and task, and each worker: its owner and epoch. Those of tasks are written with the task. */
import { FIRST_EPOCH, ownerOf, type TaskRecord } from "@heddle/protocol";
import { NO_CHANGES, type Projection, type RowChange } from "./changes.ts";

const table = "leases";

export const leases: Projection = {
  table,
  changes({ stream, body }) {
    switch (body.type) {
      case "turn.admitted": {
        const values = { stream, owner: ownerOf(body.holder), epoch: FIRST_EPOCH };
        return [{ kind: "put", table, key: { subject: body.turnId }, values }];
      }
      case "turn.resumed": {
        const { turnId, holder, epoch } = body;
        const owner = ownerOf(holder);
        // Older events have no epoch.
        const taken = epoch === undefined ? { set: { owner }, add: { epoch: 1 } } : { set: { owner, epoch } };
        return [{ kind: "update", table, where: { subject: turnId }, ...taken }];
      }
      case "turn.completed":
        return [{ kind: "delete", table, where: { subject: body.turnId, stream } }];
      case "worker.joined": {
        const values = { stream, owner: ownerOf(body.holder), epoch: FIRST_EPOCH };
        return [{ kind: "put", table, key: { subject: stream }, values }];
      }
      case "worker.left":
        return [{ kind: "delete", table, where: { subject: stream } }];
      case "worker.fenced":
        return [
          { kind: "delete", table, where: { subject: stream } },
          // What it holds is still to be taken by others; the epoch that it knows is over.
          { kind: "update", table, where: { owner: ownerOf(body.holder) }, set: {}, add: { epoch: 1 } },
        ];
      default:
        return NO_CHANGES;
    }
  },
};

/** The change of a task's lease. */
export function leaseOfTask(before: TaskRecord | undefined, { id, holder, attempt }: TaskRecord): readonly RowChange[] {
  const wasHeld = before?.holder !== undefined;
  if (holder === undefined) return wasHeld ? [{ kind: "delete", table, where: { subject: id } }] : NO_CHANGES;
  if (wasHeld && before.attempt === attempt) return NO_CHANGES;
  const values = { stream: id, owner: ownerOf(holder), epoch: attempt };
  return [{ kind: "put", table, key: { subject: id }, values }];
}
