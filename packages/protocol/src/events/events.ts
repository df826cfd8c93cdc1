/**
 * Every stored event. One union, one `type` and `v` each; a new shape is a new `v` with an upcaster, never an edit.
 *
 * The life of a turn, in order:
 *   turn.admitted → turn.started → { item.* | model.* | tool.* | approval.* | turn.steered }* → turn.completed
 * `turn.admitted` and `turn.completed` exist exactly once a turn; `turn.started` may be missing when a turn ends early.
 */
import { z } from "zod";
import { agentEvents, NativeEnd } from "./agent-events.ts";
import type { Author } from "./authors.ts";
import { Envelope, SandboxHolds, SandboxLevel } from "../envelopes/envelope.ts";
import { envelopeEvents } from "./envelope-events.ts";
import { ApprovalAnswer, ApprovalQuestion, HopRequest, Permissions } from "../threads/approvals.ts";
import { event, Failure, Holder, turnEvent } from "./event-parts.ts";
import { clientEvents } from "./client-events.ts";
import { evidenceEvents } from "./evidence-events.ts";
import { HookEvent } from "../threads/hooks.ts";
import { importEvents } from "./import-events.ts";
import { InputPart, Item, PlanStep } from "../threads/items.ts";
import { ModelOutputPart, Usage } from "../threads/model-output.ts";
import { InputRole, InputSource, messageEvents } from "../threads/messages.ts";
import { networkEvents } from "./network-events.ts";
import { workEvents } from "./worker-events.ts";
import { ClientTool, ConversationEntry, GitInfoChange, Goal, ThreadParent } from "../threads/thread-facts.ts";
import { ClientContext, ReasoningSummary, TurnSettings } from "../threads/turn-settings.ts";

export {
  BroughtServer,
  ClientContext,
  EnvironmentPolicy,
  Personality,
  ReasoningSummary,
  SearchKind,
  SearchOptions,
  TurnLimits,
  TurnSettings,
  Verbosity,
} from "../threads/turn-settings.ts";

export const TurnStatus = z.enum(["completed", "failed", "interrupted"]);
export type TurnStatus = z.infer<typeof TurnStatus>;

/** How a tool call ended. `denied`: never ran. `unknown`: an intent without a result; never run again by itself. */
export const ToolOutcomeKind = z.enum(["ok", "failed", "denied", "cancelled", "unknown"]);
export type ToolOutcomeKind = z.infer<typeof ToolOutcomeKind>;

/** A hop is a checked change of envelope. It ends with its scope: `call` with the call, `turn` with the turn, `thread` never. */
const HopScope = z.enum(["call", "turn", "thread"]);
export type HopScope = z.infer<typeof HopScope>;

/** Absent: a step of the conversation. Requests for another purpose are not part of it. */
const purpose = z.literal("compaction").optional();
const ContextFile = z.object({
  path: z.string(),
  sha256: z.string(),
  truncatedBytes: z.number(),
  /** Of the text that was sent; absent in older events. */
  bytes: z.number().optional(),
});
/** Sent before the input, unless the conversation holds the same already. */
const context = z.array(ClientContext).optional();
/** Absent: a command of the author of the event. */
const said = { role: InputRole.optional(), source: InputSource.optional() };
const asked = {
  input: z.array(InputPart),
  ...said,
  settings: TurnSettings,
  /** Keys of the settings that apply to this turn only. */
  once: z.array(z.string()).optional(),
  clientId: z.string().optional(),
  traceparent: z.string().optional().describe("The trace of the caller, as W3C Trace Context has it"),
};
const call = { callId: z.string(), itemId: z.string(), tool: z.string() };

export const EventBody = z.discriminatedUnion("type", [
  event("thread.created", {
    workspace: z.string(),
    origin: z.string(),
    title: z.string().optional(),
    /** The thread starts with the history of another one, up to and including this version. */
    forkedFrom: z.object({ threadId: z.string(), version: z.number() }).optional(),
    /** Deleted when the run ends, or by the next process when the run could not. */
    isEphemeral: z.literal(true).optional(),
    /** A repeated request with the same id and content gets this thread. */
    client: z.object({ id: z.string(), requestHash: z.string() }).optional(),
    parent: ThreadParent.optional(),
  }),
  /** The thread works in this folder from here on. Stored together with the admission of the first turn there. */
  event("thread.moved", { workspace: z.string() }),
  event("thread.named", { name: z.string() }),
  /** Lists leave out archived threads unless asked for them. */
  event("thread.archived", { isArchived: z.boolean() }),
  /** Settings for the next turns of the thread, by the keys that doors use; null removes a key. */
  event("thread.settings-changed", { changes: z.record(z.string(), z.unknown()) }),
  /** An absent key stays as it is, null removes it. */
  event("thread.metadata-changed", { gitInfo: GitInfoChange }),
  /** null: the thread has no goal any more. */
  event("thread.goal-changed", { goal: Goal.nullable() }),
  /** What a client keeps beside the thread, for itself: no model is sent it. No `payload`: it was removed. */
  event("thread.attachment-changed", {
    attachmentId: z.string(),
    attachmentType: z.string(),
    identityKey: z.string(),
    payload: z.unknown().optional(),
  }),
  /** Tools that clients of the thread run; the model is offered them from here on. */
  event("thread.tools-declared", { tools: z.array(ClientTool) }),
  /** The history of the thread ends before this turn. What is stored stays; readers and the model skip it. */
  event("thread.reverted", { beforeTurnId: z.string() }),
  /** The last event of its stream. The content of all earlier ones was purged with it. */
  event("thread.deleted", {
    reason: z.string(),
    /** Token usage of the thread, so that the ledger stays complete. */
    usage: z
      .array(
        z.object({
          day: z.string(),
          provider: z.string(),
          model: z.string(),
          taskId: z.string().optional(),
          requests: z.number().int(),
          unpriced: z.number().int(),
          usage: Usage,
          costUsd: z.number(),
        }),
      )
      .optional(),
  }),
  turnEvent("turn.admitted", {
    ...asked,
    context,
    holder: Holder,
    /**
     * `compact`: only compacts the context, without input. `review`: judges what the input names. `shell`: runs a command
     * of the user, `subject`. `goal`: works on the goal of the thread, without input. `outside`: its agent is a client.
     * `message`: started by `messages`, without input. `attached`: a person has the thread, in the interface of its agent's
     * program.
     */
    task: z.enum(["compact", "review", "shell", "goal", "outside", "message", "attached"]).optional(),
    messages: z.array(z.string()).optional(),
    /** Of a turn that messages started: no call of it is allowed more. Absent there: users gave them as commands. */
    bound: Envelope.optional(),
    /** Of a review: a short description of what is judged. Of a command: the command line. */
    subject: z.string().optional(),
    /** Of a command. */
    timeoutMs: z.number().optional(),
    /** Of an outside agent: its session as its client asked for it. The name is what the client says. */
    outside: z
      .object({ onDisconnect: z.enum(["keep", "stop"]), idleMs: z.number(), agentName: z.string().optional() })
      .optional(),
  }),
  /**
   * Queued until a turn of the same id is admitted, or until `turn.dequeued`. Again for the same turn: this input takes the
   * place of the earlier one, behind all others. `afterInterrupt` absent: it begins however the turn before it ended;
   * `wait`: not behind a turn that the user interrupted.
   */
  turnEvent("turn.queued", {
    ...asked,
    afterInterrupt: z.literal("wait").optional(),
    /** The same change moves the input of the next event too. */
    isMore: z.literal(true).optional(),
  }),
  /** It will not run. */
  turnEvent("turn.dequeued", { failure: Failure }),
  turnEvent("turn.started", {
    runner: z.string(),
    sandboxLevel: SandboxLevel,
    envelope: Envelope,
    envelopeHash: z.string(),
  }),
  /** The first call of a thread entered a new sandbox, with these limits. */
  turnEvent("sandbox.opened", { level: SandboxLevel, holds: SandboxHolds }),
  turnEvent("turn.steered", { input: z.array(InputPart), ...said, context, clientId: z.string().optional() }),
  /** Of its requests from here on; absent keys stay. `serviceTier` null: none. */
  turnEvent("turn.settings-changed", {
    model: z.string().optional(),
    effort: z.string().optional(),
    summary: ReasoningSummary.optional(),
    serviceTier: z.string().nullable().optional(),
  }),
  turnEvent("turn.interrupt-requested", { failure: Failure }),
  /** Its process died while a question was open, and this one continues. Older events have no `epoch`: it is one more than before. */
  turnEvent("turn.resumed", { holder: Holder, epoch: z.number().int().optional() }),
  turnEvent("turn.completed", {
    status: TurnStatus,
    failure: Failure.optional(),
    usage: Usage,
    /** Absent: at least one request had a model without a known price. */
    costUsd: z.number().optional(),
    durationMs: z.number(),
    /** Of a turn that an agent program has completed. */
    native: NativeEnd.optional(),
  }),
  /** What the model is told about its environment; stored when it has changed. */
  turnEvent("context.loaded", {
    text: z.string(),
    sources: z.array(ContextFile),
  }),
  /** Text that Heddle adds to the conversation here: a skill, a note of a hook, a request to fix something. */
  turnEvent("context.added", {
    source: z.enum(["skill", "hook", "schema", "shell", "goal", "client", "envelope", "message"]),
    /** The skill, the hook's event, the tool that ran, the envelope, the message, or the client's own name for it. */
    name: z.string(),
    text: z.string(),
    /** Of a client: it vouches for the text. */
    kind: ClientContext.shape.kind.optional(),
    /** Where it was read from. */
    file: ContextFile.optional(),
  }),
  /** Added to the conversation here by a client, outside any turn. Every call in it has its result. */
  event("context.injected", { entries: z.array(ConversationEntry) }),
  /**
   * From here on the model sees: its environment, `keptMessages`, the summary with plan and open commands, then everything
   * from `keptFrom` on. Stored events stay as they are. A name is the id of a turn (its input), an item or a request.
   */
  turnEvent("context.compacted", {
    trigger: z.enum(["auto", "overflow", "manual"]),
    /** The last version that the summary covers. */
    throughVersion: z.number().int(),
    summary: z.string(),
    plan: z.array(PlanStep),
    openCommands: z.array(z.object({ processId: z.string(), command: z.string() })),
    /** Messages of the user, oldest first; `maxBytes`: cut to this size. */
    keptMessages: z.array(z.object({ name: z.string(), maxBytes: z.number().int().optional() })),
    keptFrom: z.string().optional(),
    tokensBefore: z.number().int(),
    tokensAfter: z.number().int(),
  }),
  /**
   * The provider refused such parts: they are left out of everything before, except the input of this turn. `sealed`:
   * what only its provider can read; `structure`: calls, results and images are sent as text.
   */
  turnEvent("context.left-out", {
    parts: z.enum(["sealed", "images", "structure"]),
    provider: z.string(),
    model: z.string(),
    failure: Failure,
  }),
  /** One run of one hook. `blocked`: it refused, or it failed and its configuration counts that as a refusal. */
  turnEvent("hook.ran", {
    event: HookEvent,
    command: z.string(),
    /** A call, a source or a trigger. */
    subject: z.string().optional(),
    outcome: z.enum(["ok", "blocked", "failed"]),
    reason: z.string().optional(),
    failure: Failure.optional(),
    exitCode: z.number().optional(),
    durationMs: z.number(),
    output: z.string(),
    truncatedBytes: z.number().optional(),
  }),
  turnEvent("item.started", { item: Item }),
  /** What a running item has added since its last checkpoint; at most one a second. `offset`: characters before it. */
  turnEvent("item.checkpointed", {
    itemId: z.string(),
    channel: z.string(),
    offset: z.number().int().optional(),
    appended: z.string(),
  }),
  turnEvent("item.completed", { item: Item }),
  turnEvent("model.requested", {
    requestId: z.string(),
    provider: z.string(),
    model: z.string(),
    requestBytes: z.number(),
    purpose,
  }),
  turnEvent("model.retried", {
    requestId: z.string(),
    /** Requests so far, and how many there can be. */
    attempt: z.number().int(),
    maxAttempts: z.number().int(),
    /** `request`: no answer had begun, and the same request is sent again. Absent or `stream`: a new answer is requested. */
    level: z.enum(["request", "stream"]).optional(),
    /** Answers requested so far, and how many there can be; absent: as many as there were requests. */
    round: z.number().int().optional(),
    maxRounds: z.number().int().optional(),
    delayMs: z.number(),
    cause: Failure,
  }),
  turnEvent("model.responded", {
    requestId: z.string(),
    output: z.array(ModelOutputPart),
    stopReason: z.string(),
    /** Of a refusal: the reason that the provider gives. */
    explanation: z.string().optional(),
    usage: Usage,
    costUsd: z.number().optional(),
    /** Events of the stream that could not be read; the answer is complete without them. */
    skipped: z.object({ events: z.number().int(), firstBytes: z.string() }).optional(),
    purpose,
  }),
  /** Durable before the side effect begins. */
  turnEvent("tool.intended", {
    ...call,
    arguments: z.unknown(),
    /** The call changes nothing, so running it again after a crash is harmless. */
    isReadOnly: z.boolean(),
  }),
  turnEvent("tool.settled", {
    ...call,
    outcome: ToolOutcomeKind,
    failure: Failure.optional(),
    /** For the model. */
    output: z.array(InputPart),
    /** Set when a command outlives the call: its item stays open until it ends, and later calls name it by this id. */
    processId: z.string().optional(),
    /** By a file tool, into files; absent: nothing, or not counted. */
    bytesWritten: z.int().nonnegative().optional(),
  }),
  /** The result of a client's own tool; the first answer counts. */
  turnEvent("tool.answered", {
    itemId: z.string(),
    content: z.array(InputPart),
    /** The tool failed, or no client could run it. */
    failure: Failure.optional(),
  }),
  turnEvent("approval.requested", {
    approvalId: z.string(),
    question: ApprovalQuestion,
    /** No client could be asked: policy answers, and the question does not outlive its process. */
    isUnattended: z.literal(true).optional(),
    /** Declined by policy when there is no answer by then; absent: it waits forever. */
    answerBy: z.number().optional(),
  }),
  turnEvent("approval.resolved", { approvalId: z.string(), ...ApprovalAnswer.shape }),
  /** The tools of an MCP server; stored when it was reached and whenever its list changed. */
  turnEvent("mcp.listed", {
    server: z.string(),
    transport: z.enum(["stdio", "http"]),
    /** The server reaches the network: by its own address, or because its sandbox is open. */
    hasNetwork: z.boolean(),
    protocolVersion: z.string(),
    /** `definition` is a hash of everything the server says about the tool; `offeredAs` is the name for models. */
    tools: z.array(z.object({ tool: z.string(), offeredAs: z.string(), definition: z.string() })),
    /** Tools of an earlier list of this thread whose definition has changed. */
    changed: z.array(z.string()),
  }),
  /** A short model request outside the conversation: its usage, never its text. */
  event("background.ran", {
    purpose: z.enum(["title", "summary", "sample"]),
    provider: z.string(),
    model: z.string(),
    outcome: z.enum(["ok", "failed"]),
    failureCode: z.string().optional(),
    usage: Usage,
    costUsd: z.number().optional(),
    durationMs: z.number(),
  }),
  turnEvent("path.violated", {
    callId: z.string().optional(),
    path: z.string(),
    /** Where the file was moved; absent when it could only be reported. */
    quarantinedTo: z.string().optional(),
  }),
  /** Durable before anything runs in the wider envelope. */
  turnEvent("hop.taken", {
    callId: z.string(),
    scope: HopScope,
    /** Hash of the envelope before. */
    from: z.string(),
    to: Envelope,
    toHash: z.string(),
    sandboxLevel: SandboxLevel,
    /** What was added; absent: the call runs without a sandbox. */
    permissions: Permissions.optional(),
  }),
  /** Above the ceiling, or no client may be asked. The call is refused as an item too. */
  turnEvent("hop.refused", { callId: z.string(), wish: HopRequest, failure: Failure }),
  ...envelopeEvents,
  ...evidenceEvents,
  ...importEvents,
  ...networkEvents,
  ...messageEvents,
  ...agentEvents,
  ...clientEvents,
  ...workEvents,
]);
export type EventBody = z.infer<typeof EventBody>;
export type EventType = EventBody["type"];
export type EventOf<T extends EventType> = Extract<EventBody, { type: T }>;

/** One stored fact with its position in the journal and in its chain. */
export interface StoredEvent<B extends EventBody = EventBody> {
  /** In the whole journal; the cursor that readers keep. */
  readonly position: number;
  /** A thread or task id. */
  readonly stream: string;
  /** Dense, 1..n within the stream. */
  readonly version: number;
  readonly id: string;
  /** Wall clock in ms, for people; order comes from `position`. */
  readonly at: number;
  readonly author: Author;
  readonly body: B;
  readonly hash: string;
  /** Of the event before it in its stream; absent where it was not read from a store. */
  readonly prevHash?: string;
}
