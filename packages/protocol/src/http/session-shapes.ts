/**
 * Sessions of outside agents, as they go over the wire: what each method takes and answers, and what the server says by
 * itself. A session is a turn whose agent is the client, so its id is the id of its turn. From these the methods are served,
 * their schema is made and the typed client is written.
 */
import { z } from "zod";
import { ENVELOPE_EXAMPLES } from "../envelopes/built-in-envelopes.ts";
import { ApprovalPolicy, Envelope, SandboxMode } from "../envelopes/envelope.ts";
import { Failure } from "../events/event-parts.ts";
import { ToolOutcomeKind, TurnStatus } from "../events/events.ts";
import { InputPart } from "../threads/items.ts";

const MAX_ID_CHARS = 200;
const MAX_REASON_CHARS = 2000;
/** The longest that any server lets a session be idle. */
export const MAX_IDLE_SEC = 86_400;

const id = z.string().min(1).max(MAX_ID_CHARS);
const envelopeName = id.meta(ENVELOPE_EXAMPLES);
const name = z
  .string()
  .regex(
    /^[A-Za-z0-9][\w.-]{0,63}$/,
    "up to 64 letters, digits, dots, dashes and underscores, not a dot or dash first",
  );
/** A version of the thread: what happened up to it is known. */
const cursor = z.int().min(0);

/** `keep`: the session waits for its client to come back; `stop`: it ends with the connection. */
export const OnDisconnect = z.enum(["keep", "stop"]);
export type OnDisconnect = z.infer<typeof OnDisconnect>;

const SessionTool = z.strictObject({
  name: z.string(),
  description: z.string(),
  inputSchema: z.record(z.string(), z.unknown()).optional(),
});

/** What the agent may do now. */
const surface = { envelope: Envelope, envelopeHash: z.string(), tools: z.array(SessionTool) };

const result = {
  callId: id,
  outcome: ToolOutcomeKind,
  output: z.array(InputPart),
  failure: Failure.optional(),
  itemId: z.string(),
  /** The command goes on after its call was answered. */
  processId: z.string().optional(),
};

const EnterParams = z.strictObject({
  /** Absent: a new thread. */
  threadId: id.optional(),
  /** The folder to work in; absent: that of the thread, or of the server. */
  cwd: z.string().min(1).optional(),
  sandbox: SandboxMode.optional(),
  /** By its name; counts more than `sandbox`. */
  envelope: envelopeName.optional(),
  /** The widest envelope that this turn may have. */
  ceiling: envelopeName.optional(),
  /** `never`: nobody is asked, and what would need an answer is refused. Absent: as the thread or the configuration says. */
  approvalPolicy: ApprovalPolicy.optional(),
  /** `stop` when absent. */
  onDisconnect: OnDisconnect.optional(),
  /** The session ends when nothing was called for so long; at most, and when absent, what the server allows. */
  idleSec: z.number().min(1).max(MAX_IDLE_SEC).optional(),
  /** What the agent calls itself. Of one user, one open session has the name. */
  agentName: name.optional(),
  /** The same id again is the same session. */
  clientId: id.optional(),
});

/** As it was answered last: the call is refused (`envelope.changed`) where the agent is in another envelope by then. */
const believed = { envelopeHash: z.string().max(MAX_ID_CHARS).optional() };

const CallParams = z.strictObject({
  turnId: id,
  ...believed,
  /** The client's own: the same id and arguments again get the first result. */
  callId: id,
  tool: z.string().min(1).max(MAX_ID_CHARS),
  arguments: z.record(z.string(), z.unknown()).optional(),
});

const HopParams = z.strictObject({
  turnId: id,
  ...believed,
  callId: id,
  /** `back`: where it came from. */
  to: envelopeName,
  reason: z.string().min(1).max(MAX_REASON_CHARS),
  carry: z.record(z.string(), z.unknown()).optional(),
  outcome: z.unknown().optional(),
});

const AttachParams = z.strictObject({
  turnId: id,
  /** Results behind this cursor are told; absent: none. */
  after: cursor.optional(),
});

const LeaveParams = z.strictObject({
  turnId: id,
  /** In the shape that the envelope names for it, if it names one. */
  outcome: z.unknown().optional(),
});

const SessionResult = z.strictObject({ ...result, tool: z.string(), cursor });
/** Users have added these to the turn since the call before. */
const added = z.array(z.array(InputPart)).optional();

const SessionEnd = z.strictObject({ status: TurnStatus, failure: Failure.optional() });

const Session = z.strictObject({
  turnId: id,
  threadId: z.string(),
  by: z.string(),
  agentName: name.optional(),
  onDisconnect: OnDisconnect,
  idleSec: z.number(),
  /** Id of the envelope. */
  envelope: z.string(),
  /** A connection speaks for it now. */
  isAttached: z.boolean(),
  /** Calls that run or wait, in their order. */
  calls: z.array(id),
});

/** Method → what it takes and answers. */
export const SESSION_METHODS = {
  "envelope/enter": {
    params: EnterParams,
    result: z.strictObject({ threadId: z.string(), turnId: id, ...surface, cursor, idleSec: z.number() }),
  },
  "envelope/attach": {
    params: AttachParams,
    result: z.discriminatedUnion("state", [
      z.strictObject({
        state: z.literal("open"),
        threadId: z.string(),
        turnId: id,
        ...surface,
        /** Calls that run or wait: the same `tool/call` again waits for its result. */
        calls: z.array(id),
        results: z.array(SessionResult),
        /** Where the results end; with `hasMore`, ask again from here. */
        cursor,
        hasMore: z.boolean(),
      }),
      z.strictObject({
        state: z.literal("ended"),
        threadId: z.string(),
        turnId: id,
        end: SessionEnd,
        results: z.array(SessionResult),
        cursor,
        hasMore: z.boolean(),
      }),
    ]),
  },
  "envelope/sessions": { params: z.strictObject({}), result: z.strictObject({ data: z.array(Session) }) },
  "tool/call": { params: CallParams, result: z.strictObject({ turnId: id, ...result, cursor, added }) },
  "tool/cancel": {
    params: z.strictObject({ turnId: id, callId: id }),
    /** `settled`: it has its result; `unknown`: there was no such call. */
    result: z.strictObject({ turnId: id, callId: id, status: z.enum(["cancelling", "settled", "unknown"]) }),
  },
  "envelope/hop": {
    params: HopParams,
    result: z.strictObject({ turnId: id, ...result, cursor, added, ...surface }),
  },
  "envelope/leave": {
    params: LeaveParams,
    /** `gone`: it had ended. */
    result: z.strictObject({ turnId: id, status: z.enum(["left", "gone"]) }),
  },
} as const;

/** Said to the connection that speaks for the session. */
export const SESSION_NOTIFICATIONS = {
  /** What a running call puts out, live. Its end has the whole output, and what is said here may be cut for a slow reader. */
  "tool/output": z.strictObject({
    turnId: id,
    threadId: z.string(),
    callId: id,
    /** Of the `tool/call` on this connection; absent: it was made on another one. */
    requestId: z.union([z.string(), z.number()]).optional(),
    itemId: z.string(),
    delta: z.string(),
  }),
  /** Another connection speaks for the session now. */
  "envelope/replaced": z.strictObject({ turnId: id, threadId: z.string() }),
  "envelope/ended": z.strictObject({ turnId: id, threadId: z.string(), ...SessionEnd.shape }),
} as const;

export type SessionMethod = keyof typeof SESSION_METHODS;
export type SessionParams = { readonly [M in SessionMethod]: z.input<(typeof SESSION_METHODS)[M]["params"]> };
export type SessionAnswers = { readonly [M in SessionMethod]: z.output<(typeof SESSION_METHODS)[M]["result"]> };
export type SessionNotification = keyof typeof SESSION_NOTIFICATIONS;
export type SessionSaid = {
  readonly [N in SessionNotification]: z.output<(typeof SESSION_NOTIFICATIONS)[N]>;
};
