/** Messages as doors show them: what was said and by whom, whether an agent was told, and the answer. */
import type { Journal, MessageRow } from "@heddle/journal";
import { HeddleError, type Message } from "@heddle/protocol";
import { eventAt } from "../threads/history.ts";
import { expire, standingEnd } from "./settle.ts";

export async function readMessage(journal: Journal, id: string): Promise<Message> {
  const row = await journal.messages.get(id);
  const view = row && (await viewOf(journal, row));
  if (view !== undefined) return view;
  throw new HeddleError("message.not-found", `there is no message ${id.slice(0, 128)}`);
}

/** To a thread or from it, newest first. */
export async function readMessages(journal: Journal, threadId: string, limit: number): Promise<readonly Message[]> {
  const views: Message[] = [];
  for (const row of await journal.messages.of(threadId, { limit })) {
    const view = await viewOf(journal, row);
    if (view !== undefined) views.push(view);
  }
  return views;
}

/** undefined: what it said was deleted with its thread. Of a question whose time is over the record says so from here on. */
async function viewOf(journal: Journal, known: MessageRow): Promise<Message | undefined> {
  const late = journal.isWritable ? await expire(journal, known) : undefined;
  const row = late === undefined ? known : ((await journal.messages.get(known.id)) ?? known);
  const at = row.receivedVersion === undefined ? row.from && row.sentVersion : row.receivedVersion;
  if (typeof at !== "number") return undefined;
  const event = await eventAt(journal, row.receivedVersion === undefined ? (row.from ?? "") : row.to, at);
  const body = event?.body;
  if (event === undefined || (body?.type !== "message.received" && body?.type !== "message.sent")) return undefined;
  const end = row.settled === undefined ? undefined : await standingEnd(journal, row);
  return {
    messageId: row.id,
    kind: row.kind,
    role: body.role,
    author: event.author,
    from: body.from ?? null,
    to: row.to,
    text: body.text,
    inputs: body.inputs,
    sentAt: event.at,
    answerBy: row.answerBy ?? null,
    entryId: event.id,
    wakes: body.type === "message.received" && body.wakes,
    givenIn: row.givenTurn ?? null,
    outcome: end?.outcome ?? null,
    answer: end?.text ?? null,
    failure: end?.failure ?? null,
  };
}
