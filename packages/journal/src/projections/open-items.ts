/** One row per running item, and per question without an answer: what is at work and what waits, however long the thread. */
import { visibleLine, type Item } from "@heddle/protocol";
import { NO_CHANGES, type Projection } from "./changes.ts";

export const openItems: Projection = {
  table: "open_items",
  changes({ stream, version, at, body }) {
    const table = "open_items";
    switch (body.type) {
      case "item.started": {
        const { id, type } = body.item;
        const values = {
          turn_id: body.turnId,
          type,
          text: textOf(body.item),
          started_version: version,
          started_at: at,
        };
        return [{ kind: "insert", table, key: { thread_id: stream, item_id: id }, values }];
      }
      case "item.checkpointed":
        return [{ kind: "update", table, where: { thread_id: stream, item_id: body.itemId }, set: { output_at: at } }];
      case "item.completed":
        return [{ kind: "delete", table, where: { thread_id: stream, item_id: body.item.id } }];
      case "turn.completed":
        return [{ kind: "delete", table, where: { thread_id: stream, turn_id: body.turnId } }];
      case "thread.deleted":
        return [{ kind: "delete", table, where: { thread_id: stream } }];
      default:
        return NO_CHANGES;
    }
  },
};

export const openApprovals: Projection = {
  table: "open_approvals",
  changes({ stream, version, at, body }) {
    const table = "open_approvals";
    switch (body.type) {
      case "approval.requested": {
        const values = { thread_id: stream, turn_id: body.turnId, version, asked_at: at };
        return [{ kind: "insert", table, key: { id: body.approvalId }, values }];
      }
      case "approval.resolved":
        return [{ kind: "delete", table, where: { id: body.approvalId, thread_id: stream } }];
      case "turn.completed":
        return [{ kind: "delete", table, where: { thread_id: stream, turn_id: body.turnId } }];
      case "thread.deleted":
        return [{ kind: "delete", table, where: { thread_id: stream } }];
      default:
        return NO_CHANGES;
    }
  },
};

/** Of a line in a list. */
const MAX_CHARS = 200;

/** What it does, on one line and safe to show. */
function textOf(item: Item): string | null {
  const text = wordsOf(item);
  if (text === undefined) return null;
  const shown = visibleLine(
    text
      .slice(0, 4 * MAX_CHARS)
      .replace(/\s+/gu, " ")
      .trim(),
  );
  return shown.length <= MAX_CHARS ? shown : `${shown.slice(0, MAX_CHARS - 1).replace(/[\uD800-\uDBFF]$/u, "")}…`;
}

function wordsOf(item: Item): string | undefined {
  switch (item.type) {
    case "commandExecution":
      return item.command;
    case "toolCall":
      return item.tool;
    case "mcpToolCall":
      return `${item.server} ${item.tool}`;
    case "collabToolCall":
      return item.tool;
    case "fileChange":
      return item.changes.map(({ path }) => path).join(" ");
    case "imageView":
      return item.path;
    default:
      return undefined;
  }
}
