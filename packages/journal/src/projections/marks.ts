/**
 * Where events are that later ones depend on: one row each, so that a long thread is resumed without reading what lies
 * between. `name` distinguishes those of a kind.
 */
import type { EventBody, Item } from "@heddle/protocol";
import { attachmentName, type MarkKind } from "../queries/marks.ts";
import { NO_CHANGES, type Projection, type RowChange } from "./changes.ts";

const table = "marks";

export const marks: Projection = {
  table,
  changes({ stream, version, body }) {
    if (body.type === "thread.deleted" || body.type === "task.deleted")
      return [{ kind: "delete", table, where: { stream } }];
    const found = marksOf(body);
    return found.length === 0
      ? NO_CHANGES
      : found.map(([kind, name]): RowChange => ({
          kind: "insert",
          table,
          key: { stream, kind, name, version },
          values: {},
        }));
  },
};

type Mark = readonly [kind: MarkKind, name: string];
const NONE: readonly Mark[] = [];
const STEP: Mark = ["task.step", ""];
const BASELINE: Mark = ["task.baseline", ""];

function marksOf(body: EventBody): readonly Mark[] {
  switch (body.type) {
    case "thread.reverted":
    case "thread.named":
    case "thread.settings-changed":
    case "thread.tools-declared":
    case "thread.goal-changed":
    case "context.loaded":
    case "context.compacted":
    case "context.left-out":
      return [[body.type, ""]];
    case "turn.queued":
      return [[body.type, body.turnId], ...sent(body.clientId)];
    case "turn.dequeued":
      return [[body.type, body.turnId]];
    case "turn.admitted":
    case "turn.steered":
      return sent(body.clientId);
    case "agent.connected":
      return [[body.type, body.runner]];
    case "thread.attachment-changed":
      return [[body.type, attachmentName(body)]];
    case "approval.requested":
      return [[body.type, body.approvalId]];
    case "approval.resolved":
      return body.decision === "acceptForThread" ? [["acceptedForThread", body.approvalId]] : NONE;
    case "hop.taken":
      return body.scope === "call" ? NONE : [[body.type, body.turnId]];
    case "item.completed":
      return markOfItem(body.item);
    case "tool.settled":
      return body.processId === undefined ? NONE : [["processLeft", body.processId]];
    case "task.taken":
      return [[body.type, ""]];
    case "task.prepared":
      return body.baseline === undefined ? [[body.type, ""]] : [[body.type, ""], BASELINE];
    case "task.checked":
      return [[body.type, body.work?.base ?? ""], ...(body.review === undefined ? NONE : [STEP])];
    case "task.retried":
      return body.attempt === undefined ? [STEP, BASELINE] : [STEP];
    case "task.created":
    case "task.claimed":
    case "task.hop-due":
    case "task.hopped":
    case "task.hop-refused":
    case "task.rejected":
    case "task.resumed":
    case "task.failed":
    case "task.cancelled":
      return [STEP];
    case "task.turn-ended":
      return [STEP, [body.type, ""]];
    default:
      return NONE;
  }
}

function markOfItem(item: Item): readonly Mark[] {
  if (item.type === "userMessage") return [["userMessage", item.id]];
  return item.type === "fileChange" && item.status === "completed" ? [["fileChange", ""]] : NONE;
}

function sent(clientId: string | undefined): readonly Mark[] {
  return clientId === undefined ? NONE : [["sent", clientId]];
}
