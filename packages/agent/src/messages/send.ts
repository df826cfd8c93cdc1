/**
 * Messages from users and agents to threads. What an agent sends is first in its own thread, then in that of the receiver;
 * between the two a crash may lie, so whoever opens the home next delivers what was not. The same message is delivered once.
 *
 *   checked ─▶ sent (the sender's thread) ─▶ received (the receiver's) ─▶ acknowledged
 *                    └── crash: delivered again by its key      └── too many wait, or gone: settled as refused
 */
import type { Journal, MessageRow, ThreadRow } from "@heddle/journal";
import {
  canonical,
  HeddleError,
  isHeddleError,
  isUser,
  MAX_ASK_MS,
  OutgoingMessage,
  PLAIN,
  reasonOf,
  toHeddleError,
  uuidv7,
  type By,
  type Envelope,
  type EventOf,
  type InputRole,
  type MessageKind,
  type StoredEvent,
} from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { findAgent } from "../agents/names.ts";
import { appendAt } from "../threads/append-at.ts";
import { eventAt } from "../threads/history.ts";
import { checkHops, checkRate, checkRoom, refuseCycle } from "./limits.ts";
import { wakesOf, type MessageRules } from "./rules.ts";
import { settle } from "./settle.ts";

export interface Sending extends OutgoingMessage {
  /** The name of an agent, or its thread. */
  readonly to: string;
  /** How long an answer may take; absent: none is expected. */
  readonly timeoutMs?: number | undefined;
  /** The turn whose agent sends it; absent: a user does. */
  readonly from?: SenderTurn | undefined;
}

export interface SenderTurn {
  readonly threadId: string;
  readonly turnId: string;
  /** Of the messages that started the turn; undefined: none did. */
  readonly hops?: number | undefined;
  /** What it is allowed now. */
  readonly envelope: Envelope;
}

export interface Sent {
  readonly messageId: string;
  readonly threadId: string;
  /** `wakes`: it may start a turn at once. `waits`: it is kept, and shown with the next turn. */
  readonly how: "wakes" | "waits";
  readonly answerBy?: number | undefined;
}

/** Durable when it resolves. Every refusal is typed; what is refused is on record where it had been sent. */
export async function sendMessage(journal: Journal, given: Sending & By, rules: MessageRules): Promise<Sent> {
  const { to, timeoutMs, from, by, ...outgoing } = given;
  const parsed = OutgoingMessage.safeParse(outgoing, PLAIN);
  if (!parsed.success) {
    throw new HeddleError("usage.invalid", `message: ${reasonOf(parsed.error)}`, { cause: parsed.error });
  }
  if (timeoutMs !== undefined && !(timeoutMs >= 1 && timeoutMs <= MAX_ASK_MS)) {
    throw new HeddleError("usage.invalid", `an answer may take 1 to ${MAX_ASK_MS} ms`);
  }
  const receiver = await findAgent(journal, to);
  const {
    messageId = `msg_${uuidv7()}`,
    text,
    role = isUser(by) ? "command" : "quote",
    inputs = [],
    replyTo,
  } = parsed.data;
  const kind: MessageKind = timeoutMs === undefined ? "tell" : "ask";
  const said: Said = { messageId, kind, role, text, inputs, ...(replyTo === undefined ? {} : { replyTo }) };
  const known = await journal.messages.get(messageId);
  if (known !== undefined) return sameMessage(journal, known, { said, receiver, by });
  await check(journal, said, { receiver, by, from, rules });
  const message = {
    ...said,
    hops: from?.hops === undefined ? 0 : from.hops + 1,
    ...(timeoutMs === undefined ? {} : { answerBy: Date.now() + Math.ceil(timeoutMs) }),
    ...(from !== undefined && role === "command" ? { envelope: from.envelope } : {}),
  };
  if (from === undefined) await receive(journal, { message, by, to: receiver.id, rules });
  else await sendFrom(journal, { message, by, from, to: receiver.id, rules });
  failpoint("message.after-received");
  return sentAs(journal, messageId);
}

type Said = Pick<EventOf<"message.sent">, "messageId" | "kind" | "role" | "text" | "inputs" | "replyTo">;
type Content = Omit<EventOf<"message.received">, "type" | "v" | "from" | "wakes">;

interface Checked extends By {
  readonly receiver: ThreadRow;
  readonly from: SenderTurn | undefined;
  readonly rules: MessageRules;
}

async function check(journal: Journal, { kind, role, inputs, replyTo }: Said, checked: Checked): Promise<void> {
  const { receiver, from, by } = checked;
  requireThere(receiver);
  if (from?.threadId === receiver.id) throw new HeddleError("usage.invalid", "an agent sends no messages to itself");
  if (role === "command") requireAuthority(receiver, { by, from });
  checkHops(from?.hops === undefined ? 0 : from.hops + 1);
  await checkRate(journal, from === undefined ? { author: by } : { thread: from.threadId });
  const entries = inputs.flatMap((input) => (input.type === "entry" ? [input.id] : []));
  for (const id of [...entries, ...(replyTo === undefined ? [] : [replyTo])]) {
    if ((await journal.evidence.get(id)) !== undefined) continue;
    throw new HeddleError("evidence.not-found", `there is no entry ${id} to pass on`, { details: { id } });
  }
  await checkRoom(journal, receiver.id);
  if (kind === "ask" && from !== undefined) await refuseCycle(journal, { from: from.threadId, to: receiver.id });
}

function requireThere({ id, isArchived }: ThreadRow): void {
  if (isArchived) throw new HeddleError("agent.gone", `thread ${id} is archived; its agent takes no messages`);
}

/** A command needs a user, or the thread that started the receiver. */
function requireAuthority({ id, parent }: ThreadRow, { by, from }: By & Pick<Checked, "from">): void {
  if (from === undefined ? isUser(by) : parent?.threadId === from.threadId) return;
  const message = `thread ${id} takes commands of users and of the thread that started it; send it as a quote`;
  throw new HeddleError("message.not-allowed", message);
}

interface Delivery extends By {
  readonly message: Content;
  readonly to: string;
  readonly rules: MessageRules;
}

async function sendFrom(journal: Journal, delivery: Delivery & { readonly from: SenderTurn }): Promise<void> {
  const { message, by, from, to, rules } = delivery;
  const name = (await journal.threads.get(from.threadId))?.agentName;
  const source = { threadId: from.threadId, turnId: from.turnId, ...(name === undefined ? {} : { name }) };
  const { events } = await journal.append({
    stream: from.threadId,
    author: by,
    key: `message.sent:${message.messageId}`,
    events: [{ type: "message.sent", v: 1, ...message, to, from: source }],
  });
  failpoint("message.after-sent");
  const [sent] = events;
  if (sent !== undefined && isSent(sent)) await deliver(journal, sent, rules);
  if (message.kind === "ask") await standBack(journal, { messageId: message.messageId, from: from.threadId, to });
}

/** Two that ask one another at the same moment have both not seen the other: the later one is taken back. */
async function standBack(
  journal: Journal,
  { messageId, ...ends }: { readonly messageId: string; readonly from: string; readonly to: string },
): Promise<void> {
  const before = (await journal.messages.get(messageId))?.receivedPosition;
  if (before === undefined) return;
  try {
    await refuseCycle(journal, { ...ends, before });
  } catch (error) {
    const { code, message } = toHeddleError(error);
    await settle(journal, messageId, { outcome: "refused", failure: { code, message }, by: "system" });
    throw error;
  }
}

/** What was sent and could not be delivered is settled in the thread of its sender, and thrown. */
export async function deliver(
  journal: Journal,
  { id, body, author: by }: StoredEvent<EventOf<"message.sent">>,
  rules: MessageRules,
): Promise<void> {
  const { type: _type, v: _v, to, from, replyTo: _replyTo, ...content } = body;
  try {
    // From the question to the answer: each replies to the one before.
    await receive(journal, { message: { ...content, replyTo: id }, by, from, to, rules });
  } catch (error) {
    const failure = toHeddleError(error);
    if (!REFUSALS.has(failure.code)) throw error;
    const { code, message } = failure;
    await settle(journal, body.messageId, { outcome: "refused", failure: { code, message }, by: "system" });
    throw error;
  }
}

const REFUSALS: ReadonlySet<string> = new Set(["agent.gone", "agent.not-found", "message.too-many"]);

export function isSent(event: StoredEvent): event is StoredEvent<EventOf<"message.sent">> {
  return event.body.type === "message.sent";
}

type Receiving = Delivery & Pick<EventOf<"message.received">, "from">;

async function receive(
  journal: Journal,
  { message, by, to, from, rules }: Receiving | (Delivery & { from?: undefined }),
) {
  const key = `message.received:${message.messageId}`;
  try {
    await appendAt(journal, to, async (expectedVersion) => {
      const row = await journal.threads.get(to);
      if (row === undefined) throw new HeddleError("agent.gone", `thread ${to} was deleted`);
      requireThere(row);
      await checkRoom(journal, to);
      const wakes = wakesOf(row, rules);
      const event = {
        type: "message.received",
        v: 1,
        ...message,
        ...(from === undefined ? {} : { from }),
        wakes,
      } as const;
      await journal.append({ stream: to, author: by, key, expectedVersion, events: [event] });
    });
  } catch (error) {
    // Another process has delivered it meanwhile, under another rule for waking.
    const isThere = (await journal.messages.get(message.messageId))?.receivedVersion !== undefined;
    if (isHeddleError(error) && error.code === "store.id-conflict" && isThere) return;
    throw error;
  }
}

async function sentAs(journal: Journal, messageId: string): Promise<Sent> {
  const row = await journal.messages.get(messageId);
  if (row?.receivedVersion === undefined)
    throw new HeddleError("agent.gone", `the receiver of ${messageId} was deleted`);
  const event = await eventAt(journal, row.to, row.receivedVersion);
  const wakes = event?.body.type === "message.received" && event.body.wakes;
  return { messageId, threadId: row.to, how: wakes ? "wakes" : "waits", answerBy: row.answerBy };
}

interface Again extends By {
  readonly said: Said;
  readonly receiver: ThreadRow;
}

async function sameMessage(journal: Journal, row: MessageRow, { said, receiver, by }: Again): Promise<Sent> {
  const at =
    row.sentVersion === undefined || row.from === undefined
      ? undefined
      : { stream: row.from, version: row.sentVersion };
  const { stream, version } = at ?? { stream: row.to, version: row.receivedVersion ?? 0 };
  const event = await eventAt(journal, stream, version);
  const body = event?.body;
  const isSame =
    (body?.type === "message.sent" || body?.type === "message.received") &&
    row.to === receiver.id &&
    row.author === by &&
    canonical(comparable(body)) === canonical(comparable(said));
  if (!isSame)
    throw new HeddleError("store.id-conflict", `message id ${said.messageId} was used before for another message`);
  if (row.receivedVersion !== undefined) return sentAs(journal, row.id);
  const failure = row.settled === undefined ? undefined : `it was ${row.settled.outcome}`;
  throw new HeddleError(
    "message.refused",
    `message ${row.id} was not delivered${failure === undefined ? "" : `: ${failure}`}`,
  );
}

function comparable({
  kind,
  role,
  text,
  inputs,
}: {
  kind: MessageKind;
  role: InputRole;
  text: string;
  inputs: unknown;
}) {
  return { kind, role, text, inputs };
}
