/**
 * How a message ends. A question has exactly one end, whoever comes first: the journal lets one key win, also between
 * processes and after a crash. Every wait for an answer has a deadline.
 *
 *   sent ──▶ delivered ──▶ given to an agent ──▶ answered
 *    │           ├──────────────┼──▶ refused     its receiver is gone, or its turn ended without an answer
 *    │           ├──────────────┼──▶ expired     no answer came in time; whoever looks next says so
 *    │           └──────────────┴──▶ withdrawn   the turn that asked was stopped
 *    └──▶ refused                                not deliverable: gone, or too many wait
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Journal, MessageRow } from "@heddle/journal";
import {
  HeddleError,
  isHeddleError,
  toHeddleError,
  type By,
  type EventOf,
  type Failure,
  type MessageOutcome,
  type StoredEvent,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { eventAt } from "../threads/history.ts";

export interface MessageEnd extends By {
  readonly outcome: MessageOutcome;
  readonly text?: string | undefined;
  readonly failure?: Failure | undefined;
  readonly duringTurn?: string | undefined;
}

/** The end that stands; it is another one where somebody else was first. */
export type StandingEnd = Pick<EventOf<"message.settled">, "outcome" | "text" | "failure" | "duringTurn">;

const GONE: StandingEnd = {
  outcome: "refused",
  failure: { code: "agent.gone", message: "the thread that was asked was deleted" },
};
const ARCHIVED = { code: "agent.gone", message: "the thread that was asked was archived" } as const;
const EXPIRED = { code: "message.expired", message: "no answer came in time" } as const;
const WITHDRAWN = { code: "tool.cancelled", message: "the sender no longer waits for an answer" } as const;

export async function settle(journal: Journal, id: string, { by, ...end }: MessageEnd): Promise<StandingEnd> {
  const row = await journal.messages.get(id);
  if (row === undefined) return GONE;
  if (row.settled !== undefined) return standingEnd(journal, row);
  const stream = row.receivedVersion === undefined ? row.from : row.to;
  if (stream === undefined) return GONE;
  const question = row.receivedVersion === undefined ? undefined : await eventAt(journal, row.to, row.receivedVersion);
  failpoint("message.before-settle");
  try {
    await journal.append({
      stream,
      author: by,
      key: `message.settled:${id}`,
      events: [settledEvent(id, end, question)],
    });
  } catch (error) {
    if (await isGone(journal, stream)) return GONE;
    if (!isHeddleError(error) || error.code !== "store.id-conflict") throw error;
  }
  const after = await journal.messages.get(id);
  return after?.settled === undefined ? GONE : standingEnd(journal, after);
}

function settledEvent(
  messageId: string,
  { outcome, text, failure, duringTurn }: Omit<MessageEnd, "by">,
  question: StoredEvent | undefined,
): EventOf<"message.settled"> {
  return {
    type: "message.settled",
    v: 1,
    messageId,
    outcome,
    ...(text === undefined ? {} : { text }),
    ...(failure === undefined ? {} : { failure }),
    ...(duringTurn === undefined ? {} : { duringTurn }),
    ...(question === undefined ? {} : { replyTo: question.id }),
  };
}

export async function standingEnd(journal: Journal, { settled }: MessageRow): Promise<StandingEnd> {
  const event = settled && (await eventAt(journal, settled.stream, settled.version));
  return event?.body.type === "message.settled" ? event.body : GONE;
}

async function isGone(journal: Journal, threadId: string): Promise<boolean> {
  return (await journal.threads.get(threadId)) === undefined;
}

/** What nobody has answered in time has its end from here on. undefined: it still has time, or an end. */
export async function expire(journal: Journal, row: MessageRow): Promise<StandingEnd | undefined> {
  const { id, kind, settled, answerBy = Infinity } = row;
  if (kind !== "ask" || settled !== undefined || answerBy > Date.now()) return undefined;
  return settle(journal, id, { outcome: "expired", failure: EXPIRED, by: "system" });
}

export interface Answering extends By {
  readonly messageId: string;
  readonly text: string;
  /** The thread that answers. */
  readonly threadId: string;
  readonly duringTurn?: string | undefined;
}

/** `message.expired` and `message.settled`: it is too late. `message.not-found`: that thread was asked nothing like it. */
export async function answerMessage(
  journal: Journal,
  { messageId, threadId, by, ...answer }: Answering,
): Promise<void> {
  const row = await journal.messages.get(messageId);
  if (row?.to !== threadId || row.kind !== "ask" || row.receivedVersion === undefined) {
    throw new HeddleError("message.not-found", `thread ${threadId} was not asked ${messageId.slice(0, 128)}`);
  }
  if (row.settled !== undefined) throw tooLate(row.id, row.settled.outcome);
  const expired = await expire(journal, row);
  if (expired !== undefined) throw tooLate(row.id, expired.outcome);
  const end = await settle(journal, messageId, { outcome: "answered", by, ...answer });
  if (end.outcome !== "answered" || end.text !== answer.text) throw tooLate(row.id, end.outcome);
}

function tooLate(id: string, outcome: MessageOutcome): HeddleError {
  if (outcome === "expired") return new HeddleError("message.expired", `the time to answer ${id} is over`);
  return new HeddleError("message.settled", `question ${id} has ended already: it was ${outcome}`);
}

/** Until the question has its end, at the latest by its deadline. A signal that aborts withdraws it, and is thrown. */
export async function awaitEnd(journal: Journal, messageId: string, signal: AbortSignal): Promise<StandingEnd> {
  const row = await journal.messages.get(messageId);
  if (row === undefined) return GONE;
  if (row.settled !== undefined) return standingEnd(journal, row);
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const clock = delay(Math.max(0, (row.answerBy ?? 0) - Date.now()), undefined, { signal: either }).then(
    () => over.abort(),
    () => undefined,
  );
  try {
    const end = await followed(journal, row, either);
    if (end !== undefined) return end;
  } finally {
    over.abort();
    await clock;
  }
  if (!signal.aborted) return settle(journal, row.id, { outcome: "expired", failure: EXPIRED, by: "system" });
  await settle(journal, row.id, { outcome: "withdrawn", failure: WITHDRAWN, by: "system" });
  throw toHeddleError(signal.reason, "tool.cancelled");
}

/** undefined: the signal has aborted. */
async function followed(journal: Journal, row: MessageRow, signal: AbortSignal): Promise<StandingEnd | undefined> {
  const after = row.receivedVersion ?? 0;
  try {
    for await (const { body } of journal.tail({ stream: row.to, after, signal })) {
      if (body.type === "message.settled" && body.messageId === row.id) return body;
      if (body.type === "thread.deleted") return GONE;
      if (body.type === "thread.archived" && body.isArchived)
        return await settle(journal, row.id, { outcome: "refused", failure: ARCHIVED, by: "system" });
    }
    return undefined;
  } catch (error) {
    if (await isGone(journal, row.to)) return GONE;
    throw error;
  }
}
