/**
 * One row per message: where it was sent and delivered, whether an agent was told of it, how it ended. What it says is in the
 * events. A deleted thread takes along what it had received, and what it had sent and not delivered.
 */
import type { EventOf, StoredEvent } from "@heddle/protocol";
import { NO_CHANGES, type Cells, type Projection, type RowChange } from "./changes.ts";

const table = "messages";
/** Of a version: not there. Null equals nothing, so it could not be looked for. */
export const NOT_THERE = 0;

export const messages: Projection = {
  table,
  changes(event) {
    const { stream, version, position, body } = event;
    switch (body.type) {
      case "message.sent":
        return [put(event, body, { to_thread: body.to, from_thread: stream, sent_version: version })];
      case "message.received": {
        const { messageId: id, from } = body;
        const arrived = { received_version: version, received_position: position };
        const facts = { ...factsOf(event, body), to_thread: stream, from_thread: from?.threadId ?? null };
        return [
          put(event, body, { to_thread: stream, from_thread: from?.threadId ?? null, sent_version: NOT_THERE }),
          { kind: "update", table, where: { id }, set: { ...facts, ...arrived } },
        ];
      }
      case "message.settled":
        return [{ kind: "update", table, where: { id: body.messageId }, set: settledAt(event, body) }];
      case "context.added":
        if (body.source !== "message") return NO_CHANGES;
        return [
          { kind: "update", table, where: { id: body.name, to_thread: stream }, fill: { given_turn: body.turnId } },
        ];
      case "thread.deleted":
        return [
          { kind: "delete", table, where: { to_thread: stream } },
          { kind: "delete", table, where: { from_thread: stream, received_version: NOT_THERE } },
          { kind: "update", table, where: { from_thread: stream }, set: { sent_version: NOT_THERE } },
        ];
      default:
        return NO_CHANGES;
    }
  },
};

type Said = EventOf<"message.sent" | "message.received">;

function factsOf({ author, at }: StoredEvent, { kind, answerBy }: Said): Cells {
  return { kind, author, at, answer_by: answerBy ?? null };
}

/** Nothing where the message is known already. */
function put(event: StoredEvent, body: Said, where: Cells): RowChange {
  const unread = { received_version: NOT_THERE, received_position: NOT_THERE, settled_version: NOT_THERE };
  const values = { ...factsOf(event, body), ...where, ...unread };
  return { kind: "insert", table, key: { id: body.messageId }, values };
}

function settledAt({ stream, version }: StoredEvent, { outcome }: EventOf<"message.settled">): Cells {
  return { outcome, settled_stream: stream, settled_version: version };
}
