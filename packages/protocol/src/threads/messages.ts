/**
 * Messages between threads, and from users to threads: `tell` expects no answer, `ask` has a deadline for one. What was sent
 * is in the thread of the sender, what arrived and how it ended in that of the receiver; part of the union in events.ts.
 */
import { z } from "zod";
import { Envelope } from "../envelopes/envelope.ts";
import { event, Failure } from "../events/event-parts.ts";

/**
 * What an input is to the agent that reads it. `command`: what to do. `context`: what to know. `quote`: what somebody said.
 * Only a command says what to do; the others are material.
 */
export const InputRole = z.enum(["command", "context", "quote"]);
export type InputRole = z.infer<typeof InputRole>;

/** The thread whose agent sent an input, by the channel it came through; absent: the author of the event is a user. */
export const InputSource = z.object({
  threadId: z.string(),
  turnId: z.string().optional(),
  name: z.string().optional(),
});
export type InputSource = z.infer<typeof InputSource>;

export const MessageKind = z.enum(["tell", "ask"]);
export type MessageKind = z.infer<typeof MessageKind>;

/** How a question ended, and how a message did that could not be delivered. */
export const MessageOutcome = z.enum(["answered", "refused", "expired", "withdrawn"]);
export type MessageOutcome = z.infer<typeof MessageOutcome>;

/** Of a message or an answer; longer ones belong in a file, with a reference to it. */
export const MAX_MESSAGE_CHARS = 8_000;
/** Nobody waits longer for an answer. */
export const MAX_ASK_MS = 24 * 3_600_000;
const MAX_NAMED_INPUTS = 16;
const MAX_AGENT_NAME_CHARS = 40;

export const AgentName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,39}$/, `must be lower-case letters, digits and -, at most ${MAX_AGENT_NAME_CHARS}`);

export const MessageId = z.string().regex(/^[A-Za-z0-9._:-]{1,128}$/, "must be of letters, digits and . _ : -");

/** What is handed over with a message, and nothing else of the sender's conversation. */
export const NamedInput = z.discriminatedUnion("type", [
  /** Not its content: the receiver reads it, where its own envelope lets it. */
  z.strictObject({
    type: z.literal("file"),
    path: z.string().min(2).max(1024).regex(/^\//, "must be absolute"),
    sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits"),
  }),
  /** An entry of the evidence; it must exist. */
  z.strictObject({ type: z.literal("entry"), id: z.string().min(1).max(256) }),
  z.strictObject({
    type: z.literal("text"),
    name: z.string().min(1).max(200),
    text: z.string().min(1).max(MAX_MESSAGE_CHARS),
  }),
]);
export type NamedInput = z.infer<typeof NamedInput>;

export const NamedInputs = z.array(NamedInput).max(MAX_NAMED_INPUTS);
const MessageText = z.string().min(1).max(MAX_MESSAGE_CHARS);

/** As a message is given: by a user at a door, or by an agent. Who sends it is known from the channel. */
export const OutgoingMessage = z.strictObject({
  /** Of the sender: sent again under its id it is the same message. Absent: a new one. */
  messageId: MessageId.optional(),
  text: MessageText,
  /** Absent: a quote. */
  role: InputRole.optional(),
  inputs: NamedInputs.optional(),
  /** An entry of the evidence that it answers. */
  replyTo: z.string().min(1).max(256).optional(),
});
export type OutgoingMessage = z.infer<typeof OutgoingMessage>;

const message = {
  messageId: z.string(),
  kind: MessageKind,
  role: InputRole,
  text: z.string(),
  inputs: z.array(NamedInput),
  /** How many messages led to it, each sent in a turn that another one had started. */
  hops: z.int(),
  replyTo: z.string().optional(),
  /** Of a question: milliseconds since 1970. */
  answerBy: z.int().optional(),
  /** Of an agent's command: what its sender was allowed. It causes no more than that. */
  envelope: Envelope.optional(),
};

export const messageEvents = [
  /** In the thread of the sender, before it is in that of the receiver. */
  event("message.sent", { ...message, to: z.string(), from: InputSource }),
  /** In the thread of the receiver: delivered. */
  event("message.received", {
    ...message,
    from: InputSource.optional(),
    /** Its receiver's owner lets it start a turn; otherwise it waits for the next one. */
    wakes: z.boolean(),
  }),
  /** Its one end. In the thread of the receiver; where that could not take it, in the one of the sender. */
  event("message.settled", {
    messageId: z.string(),
    outcome: MessageOutcome,
    text: z.string().optional(),
    failure: Failure.optional(),
    /** The turn that answered. */
    duringTurn: z.string().optional(),
    /** The entry of the question. */
    replyTo: z.string().optional(),
  }),
  /** By which others know the agent of the thread; null: by its id alone. */
  event("thread.agent-named", { name: AgentName.nullable() }),
] as const;

/** `waiting`: for an answer, of a user or of another agent. `gone`: archived, or its process died with its turn. */
export const Readiness = z.enum(["idle", "running", "waiting", "paused", "gone"]);
export type Readiness = z.infer<typeof Readiness>;

/** A thread as others see it: made from the record and the leases whenever it is asked for. */
export const Agent = z.object({
  threadId: z.string(),
  name: z.string().nullable(),
  title: z.string().nullable().describe("The name or the first input of the thread"),
  runner: z.string().nullable().describe("Of its last turn; null: it has had none"),
  envelope: z.object({ id: z.string(), hash: z.string() }).nullable(),
  workspace: z.string(),
  parent: z.string().nullable().describe("The thread that started it"),
  readiness: Readiness,
  waitsFor: z.string().nullable().describe("A question to users, or the thread that was asked"),
  turnId: z.string().nullable().describe("The turn that is open"),
  presence: z.object({
    process: z.object({ pid: z.int(), host: z.string().nullable() }).nullable().describe("Holds its turn"),
    isAlive: z.boolean().nullable().describe("null: no turn is open, or its process cannot be seen from here"),
    lastSeenAt: z.int().describe("Milliseconds since 1970"),
  }),
  wakes: z.boolean().describe("A message may start a turn"),
  unread: z.int().describe("Messages that wait for its next turn"),
});
export type Agent = z.infer<typeof Agent>;

/** A message as it stands. */
export const Message = z.object({
  messageId: z.string(),
  kind: MessageKind,
  role: InputRole,
  author: z.string(),
  from: InputSource.nullable(),
  to: z.string(),
  text: z.string(),
  inputs: z.array(NamedInput),
  sentAt: z.int(),
  answerBy: z.int().nullable(),
  entryId: z.string().nullable().describe("Its entry in the evidence"),
  wakes: z.boolean().describe("It may start a turn of its receiver"),
  givenIn: z.string().nullable().describe("The turn whose agent received it; null: it waits"),
  outcome: MessageOutcome.nullable().describe("null: it waits for an answer, or expects none"),
  answer: z.string().nullable(),
  failure: Failure.nullable(),
});
export type Message = z.infer<typeof Message>;
