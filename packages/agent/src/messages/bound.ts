/**
 * What a turn may do that messages started. Talk is apart from action: unless users gave all of them as commands, the turn is
 * bounded, in its tools, at dispatch and in the kernel, by the rule of its receiver's owner; the command of another agent
 * causes no more than that agent was allowed when it sent it.
 */
import type { Journal } from "@heddle/journal";
import { HeddleError, isUser, type Envelope, type EventOf, type StoredEvent } from "@heddle/protocol";
import { intersectEnvelopes } from "@heddle/tools/child-envelopes";
import { withinCeiling } from "@heddle/tools/envelopes";
import { eventAt } from "../threads/history.ts";
import type { TurnEnvelope } from "../turns/turn-envelope.ts";
import type { MessageRules } from "./rules.ts";

export type MessageBound =
  | { readonly kind: "none" }
  /** By its name, in the surroundings of the receiver. */
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sender"; readonly envelope: Envelope };

export type Received = StoredEvent<EventOf<"message.received">>;

/** `message.not-found`: one of them does not wait any more. */
export async function boundOf(
  journal: Journal,
  {
    threadId,
    ids,
    rules,
  }: { readonly threadId: string; readonly ids: readonly string[]; readonly rules: MessageRules },
): Promise<MessageBound> {
  const messages: Received[] = [];
  for (const id of ids) messages.push(await waitingMessage(journal, threadId, id));
  if (messages.length === 0) throw new HeddleError("usage.invalid", "no message is named that starts the turn");
  if (messages.every(isUsersCommand)) return { kind: "none" };
  const senders = messages.map(({ body }) => (body.role === "command" ? body.envelope : undefined));
  let common: Envelope | undefined;
  for (const envelope of senders) {
    if (envelope === undefined) return { kind: "rule", name: rules.envelope };
    common = common === undefined ? envelope : intersectEnvelopes(common, envelope);
  }
  return common === undefined ? { kind: "rule", name: rules.envelope } : { kind: "sender", envelope: common };
}

export function isUsersCommand({ author, body }: Received): boolean {
  return body.role === "command" && isUser(author) && body.from === undefined;
}

export async function waitingMessage(journal: Journal, threadId: string, id: string): Promise<Received> {
  const row = await journal.messages.get(id);
  const waits = row?.to === threadId && row.givenTurn === undefined && row.settled === undefined;
  const event =
    waits && row.receivedVersion !== undefined ? await eventAt(journal, threadId, row.receivedVersion) : undefined;
  if (event?.body.type === "message.received") return { ...event, body: event.body };
  throw new HeddleError("message.not-found", `message ${id.slice(0, 128)} is not waiting for thread ${threadId}`);
}

/** No way leads out of it: there are neither hops nor questions that could widen it. */
export function withinMessage(own: TurnEnvelope, bound: MessageBound): TurnEnvelope {
  if (bound.kind === "none") return own;
  const most = closed(bound.kind === "rule" ? own.named(bound.name) : bound.envelope);
  const ceiling = own.ceiling === undefined ? most : intersectEnvelopes(own.ceiling.envelope, most);
  const within = (envelope: Envelope): Envelope => closed(intersectEnvelopes(envelope, most));
  return {
    envelope: within(own.envelope),
    named: (id) => within(own.named(id)),
    ceiling: {
      envelope: ceiling,
      exceededBy: (envelope) => withinCeiling(envelope, ceiling),
      whose: "a turn that a message started",
    },
    bound: most,
  };
}

const WAYS_OUT: ReadonlySet<string> = new Set(["hop", "request_permissions", "request_user_input"]);

function closed({ exits: _exits, ...envelope }: Envelope): Envelope {
  return { ...envelope, tools: envelope.tools.filter((tool) => !WAYS_OUT.has(tool)) };
}
