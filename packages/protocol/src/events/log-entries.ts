/**
 * How many entries of a thread's log one stored event makes. The log that clients read is numbered densely from 1, and they
 * keep such numbers: nothing here may change for events that exist. Without zod, because the journal counts with it.
 */
import type { EventBody } from "./events.ts";
import type { Item } from "../threads/items.ts";

export function logEntryCount(body: EventBody): 0 | 1 | 2 {
  switch (body.type) {
    case "thread.created":
    case "thread.moved":
    case "thread.named":
    case "thread.archived":
    case "thread.settings-changed":
    case "thread.deleted":
    case "turn.queued":
    case "turn.dequeued":
    case "turn.admitted":
    case "turn.completed":
    case "model.responded":
    case "model.retried":
    case "approval.requested":
    case "approval.resolved":
    case "path.violated":
      return 1;
    case "item.started":
      return isShownOtherwise(body.item) ? 0 : 1;
    case "item.completed":
      return entriesOfCompleted(body.item);
    case "hook.ran":
      return body.failure === undefined ? 0 : 1;
    default:
      return 0;
  }
}

function entriesOfCompleted(item: Item): 0 | 1 | 2 {
  if (item.type === "plan") return item.status === "completed" ? 1 : 0;
  return item.type === "fileChange" && item.status === "completed" ? 2 : 1;
}

/** A plan is shown when it is complete, and so is a notice. */
export function isShownOtherwise({ type }: Item): boolean {
  return type === "plan" || type === "notice";
}
