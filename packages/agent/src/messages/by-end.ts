/** A question that started a turn is answered by the last message of that turn, or refused because there is none. */
import type { Journal } from "@heddle/journal";
import { MAX_MESSAGE_CHARS, type Author, type StoredEvent } from "@heddle/protocol";
import { readTurn } from "../threads/history.ts";
import { expire, settle } from "./settle.ts";

/** Does nothing for a turn that has not ended, or was started otherwise. May be repeated. */
export async function settleByEnd(journal: Journal, turnId: string): Promise<void> {
  const events = await readTurn(journal, turnId);
  const [admitted] = events;
  const end = events.findLast(({ body }) => body.type === "turn.completed")?.body;
  if (admitted?.body.type !== "turn.admitted" || end?.type !== "turn.completed") return;
  for (const id of admitted.body.messages ?? []) {
    const row = await journal.messages.get(id);
    if (row?.kind !== "ask" || row.settled !== undefined || (await expire(journal, row)) !== undefined) continue;
    const text = end.status === "completed" ? lastMessage(events) : undefined;
    const answer =
      text === undefined
        ? ({ outcome: "refused", failure: end.failure ?? NO_ANSWER } as const)
        : ({ outcome: "answered", text } as const);
    await settle(journal, id, { ...answer, duringTurn: turnId, by: agentOf(events) });
  }
}

const NO_ANSWER = { code: "message.refused", message: "the turn ended without an answer" } as const;
const CUT = " […]";

function lastMessage(events: readonly StoredEvent[]): string | undefined {
  for (const { body } of events.toReversed()) {
    if (body.type !== "item.completed" || body.item.type !== "agentMessage" || body.item.isPartial === true) continue;
    const { text } = body.item;
    if (text.trim() === "") continue;
    return text.length <= MAX_MESSAGE_CHARS
      ? text
      : `${text.slice(0, MAX_MESSAGE_CHARS - CUT.length).toWellFormed()}${CUT}`;
  }
  return undefined;
}

function agentOf(events: readonly StoredEvent[]): Author {
  const started = events.find(({ body }) => body.type === "turn.started")?.body;
  return started?.type === "turn.started" ? `agent:${started.runner}` : "system";
}
