/**
 * Every stored event. One union, one `type` and `v` each; a new shape is a new `v` with an upcaster, never an edit.
 *
 * The life of a turn, in order:
 *   turn.admitted → turn.started → { item.* | model.* | tool.* | approval.* | turn.steered }* → turn.completed
 * `turn.admitted` and `turn.completed` exist exactly once a turn; `turn.started` may be missing when a turn ends early.
 */
import { z } from "zod";
import type { Author } from "./authors.ts";
import { Envelope, SandboxHolds, SandboxLevel } from "./envelope.ts";
import { ApprovalQuestion, Decision, Permissions, UserAnswers } from "./approvals.ts";
import { ClientTool } from "./client-tools.ts";
import { Failure, Holder } from "./event-parts.ts";
import { clientEvents } from "./client-events.ts";
import { hopEvents } from "./hop-events.ts";
import { HookEvent } from "./hooks.ts";
import { InputPart, Item, PlanStep } from "./items.ts";
import { ModelOutputPart, Usage } from "./model-output.ts";
import { sideRequestEvents } from "./side-request-events.ts";
import { taskEvents } from "./task-events.ts";
import { ConversationEntry, GitInfoChange, Goal } from "./thread-facts.ts";
import { TurnSettings } from "./turn-settings.ts";

export { TurnLimits, TurnSettings } from "./turn-settings.ts";

export const TurnStatus = z.enum(["completed", "failed", "interrupted"]);
export type TurnStatus = z.infer<typeof TurnStatus>;

/** How a tool call ended. `denied`: never ran. `unknown`: an intent without a result; never run again by itself. */
export const ToolOutcomeKind = z.enum(["ok", "failed", "denied", "cancelled", "unknown"]);
export type ToolOutcomeKind = z.infer<typeof ToolOutcomeKind>;

const turnId = z.string();
const v1 = z.literal(1);
/** Absent: a step of the conversation. What is asked for another purpose is no part of it. */
const purpose = z.literal("compaction").optional();

export const EventBody = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("thread.created"),
    v: v1,
    workspace: z.string(),
    origin: z.string(),
    title: z.string().optional(),
    /** The thread begins with the past of another one, up to and including this version of it. */
    forkedFrom: z.object({ threadId: z.string(), version: z.number() }).optional(),
    /** To be deleted when the run is over; by whoever comes next, when the run could not. */
    isEphemeral: z.literal(true).optional(),
    /** Whoever asks for it again under this id, in the same words, gets this thread. */
    client: z.object({ id: z.string(), requestHash: z.string() }).optional(),
  }),
  /** From here on the thread works in this folder. Stored together with the admission of the first turn there. */
  z.object({ type: z.literal("thread.moved"), v: v1, workspace: z.string() }),
  /** What people call the thread; the newest name counts. */
  z.object({ type: z.literal("thread.named"), v: v1, name: z.string() }),
  /** Put away, or brought back: lists leave it out unless they are asked for such threads. */
  z.object({ type: z.literal("thread.archived"), v: v1, isArchived: z.boolean() }),
  /** What the thread's next turns are wished to run with, key by key in the words of the doors; null takes a wish back. */
  z.object({ type: z.literal("thread.settings-changed"), v: v1, changes: z.record(z.string(), z.unknown()) }),
  /** What is known of where its work belongs; a key that is absent stays, null takes it out. */
  z.object({ type: z.literal("thread.metadata-changed"), v: v1, gitInfo: GitInfoChange }),
  /** What the thread is after; null: nothing any more. The newest counts. */
  z.object({ type: z.literal("thread.goal-changed"), v: v1, goal: Goal.nullable() }),
  /** Tools that clients of the thread carry out; the model is offered them from here on. */
  z.object({ type: z.literal("thread.tools-declared"), v: v1, tools: z.array(ClientTool) }),
  /** From here on the past of the thread ends before this turn. What is stored stays; reading and the model pass over it. */
  z.object({ type: z.literal("thread.reverted"), v: v1, beforeTurnId: z.string() }),
  /** The last event of its stream: with it, what all earlier ones said was purged. */
  z.object({
    type: z.literal("thread.deleted"),
    v: v1,
    reason: z.string(),
    /** What models took for it, so that the ledger stays whole. */
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
  z.object({
    type: z.literal("turn.admitted"),
    v: v1,
    turnId,
    input: z.array(InputPart),
    settings: TurnSettings,
    /** Keys of the settings that count for this turn alone: later turns go on with what was before. */
    once: z.array(z.string()).optional(),
    holder: Holder,
    clientId: z.string().optional(),
    /**
     * `compact`: a turn without input that does this one thing. `review`: what the input names is judged. `shell`: a
     * command of the user, `subject`, is run. `goal`: work for the goal of the thread, without input.
     */
    task: z.enum(["compact", "review", "shell", "goal"]).optional(),
    /** Of a review: what is judged, in a few words. Of a command: the command line. */
    subject: z.string().optional(),
    /** How long the command may take. */
    timeoutMs: z.number().optional(),
  }),
  /** Input that waits for its turn. It ends with the admission of the same id, or with `turn.dequeued`. */
  z.object({
    type: z.literal("turn.queued"),
    v: v1,
    turnId,
    input: z.array(InputPart),
    settings: TurnSettings,
    once: z.array(z.string()).optional(),
    clientId: z.string().optional(),
  }),
  /** It will not be run, and why. */
  z.object({ type: z.literal("turn.dequeued"), v: v1, turnId, failure: Failure }),
  z.object({
    type: z.literal("turn.started"),
    v: v1,
    turnId,
    runner: z.string(),
    sandboxLevel: SandboxLevel,
    envelope: Envelope,
    envelopeHash: z.string(),
  }),
  /** The first call of a thread entered a sandbox that had just been opened: this is what the kernel holds it to. */
  z.object({ type: z.literal("sandbox.opened"), v: v1, turnId, level: SandboxLevel, holds: SandboxHolds }),
  z.object({
    type: z.literal("turn.steered"),
    v: v1,
    turnId,
    input: z.array(InputPart),
    clientId: z.string().optional(),
  }),
  z.object({ type: z.literal("turn.interrupt-requested"), v: v1, turnId, failure: Failure }),
  /** Its process died while a question waited; this one carries it on. Older ones say no `epoch`: one more than before. */
  z.object({ type: z.literal("turn.resumed"), v: v1, turnId, holder: Holder, epoch: z.number().int().optional() }),
  z.object({
    type: z.literal("turn.completed"),
    v: v1,
    turnId,
    status: TurnStatus,
    failure: Failure.optional(),
    usage: Usage,
    /** Absent: at least one request had a model without a known price. */
    costUsd: z.number().optional(),
    durationMs: z.number(),
  }),
  /** What the model is told about its surroundings, stored when it differs from what the thread was told before. */
  z.object({
    type: z.literal("context.loaded"),
    v: v1,
    turnId,
    text: z.string(),
    sources: z.array(z.object({ path: z.string(), sha256: z.string(), truncatedBytes: z.number() })),
  }),
  /** Words that Heddle adds to the conversation at this place, beside the user's: a skill, a hook's note, a request to fix. */
  z.object({
    type: z.literal("context.added"),
    v: v1,
    turnId,
    source: z.enum(["skill", "hook", "schema", "shell", "goal"]),
    /** The skill, the hook's event, or the tool that ran. */
    name: z.string(),
    text: z.string(),
    /** Where it was read from. */
    file: z.object({ path: z.string(), sha256: z.string(), truncatedBytes: z.number() }).optional(),
  }),
  /** Put into the conversation at this place by a client, outside any turn. Every call in it has its result. */
  z.object({ type: z.literal("context.injected"), v: v1, entries: z.array(ConversationEntry) }),
  /**
   * From here on the model sees: the surroundings, `keptMessages`, the summary with plan and open commands, then everything
   * from `keptFrom` on. What is stored before stays as it is. A name is a turn's (its input), an item's or a request's id.
   */
  z.object({
    type: z.literal("context.compacted"),
    v: v1,
    turnId,
    trigger: z.enum(["auto", "overflow", "manual"]),
    /** The last version the summary knows of. */
    throughVersion: z.number().int(),
    summary: z.string(),
    plan: z.array(PlanStep),
    openCommands: z.array(z.object({ processId: z.string(), command: z.string() })),
    /** Messages of the user, oldest first; `maxBytes`: only so much of it. */
    keptMessages: z.array(z.object({ name: z.string(), maxBytes: z.number().int().optional() })),
    keptFrom: z.string().optional(),
    tokensBefore: z.number().int(),
    tokensAfter: z.number().int(),
  }),
  /**
   * Refused by the provider: from here on the model is not told such parts of what stands before, except of the input of
   * this turn. `sealed`: what only its provider can read; `structure`: words stand for calls, results and images.
   */
  z.object({
    type: z.literal("context.left-out"),
    v: v1,
    turnId,
    parts: z.enum(["sealed", "images", "structure"]),
    provider: z.string(),
    model: z.string(),
    /** What the provider said. */
    failure: Failure,
  }),
  /** One run of one hook. `blocked`: it said no, or it failed and was configured to count as a no. */
  z.object({
    type: z.literal("hook.ran"),
    v: v1,
    turnId,
    event: HookEvent,
    command: z.string(),
    /** What it was asked about: a call, a source, a trigger. */
    subject: z.string().optional(),
    outcome: z.enum(["ok", "blocked", "failed"]),
    /** Why it blocked. */
    reason: z.string().optional(),
    failure: Failure.optional(),
    exitCode: z.number().optional(),
    durationMs: z.number(),
    output: z.string(),
    truncatedBytes: z.number().optional(),
  }),
  z.object({ type: z.literal("item.started"), v: v1, turnId, item: Item }),
  /** What a running item has added since its last checkpoint; at most one a second. */
  z.object({
    type: z.literal("item.checkpointed"),
    v: v1,
    turnId,
    itemId: z.string(),
    channel: z.string(),
    appended: z.string(),
  }),
  z.object({ type: z.literal("item.completed"), v: v1, turnId, item: Item }),
  z.object({
    type: z.literal("model.requested"),
    v: v1,
    turnId,
    requestId: z.string(),
    provider: z.string(),
    model: z.string(),
    requestBytes: z.number(),
    purpose,
  }),
  z.object({
    type: z.literal("model.retried"),
    v: v1,
    turnId,
    requestId: z.string(),
    /** Requests so far, and how many there can be. */
    attempt: z.number().int(),
    maxAttempts: z.number().int(),
    /** `request`: no answer had begun, and the same request is sent again. Absent or `stream`: the answer is asked for anew. */
    level: z.enum(["request", "stream"]).optional(),
    /** How often the answer was asked for, and how often it can be; absent: as often as there were requests. */
    round: z.number().int().optional(),
    maxRounds: z.number().int().optional(),
    delayMs: z.number(),
    cause: Failure,
  }),
  z.object({
    type: z.literal("model.responded"),
    v: v1,
    turnId,
    requestId: z.string(),
    output: z.array(ModelOutputPart),
    stopReason: z.string(),
    /** Of a refusal: why, in the provider's words. */
    explanation: z.string().optional(),
    usage: Usage,
    costUsd: z.number().optional(),
    /** Events of the stream that could not be read; nothing of the answer was lost with them. */
    skipped: z.object({ events: z.number().int(), firstBytes: z.string() }).optional(),
    purpose,
  }),
  /** Durable before the side effect begins. */
  z.object({
    type: z.literal("tool.intended"),
    v: v1,
    turnId,
    callId: z.string(),
    itemId: z.string(),
    tool: z.string(),
    arguments: z.unknown(),
    /** The call changes nothing, so running it again after a crash is harmless. */
    isReadOnly: z.boolean(),
  }),
  z.object({
    type: z.literal("tool.settled"),
    v: v1,
    turnId,
    callId: z.string(),
    itemId: z.string(),
    tool: z.string(),
    outcome: ToolOutcomeKind,
    failure: Failure.optional(),
    /** What the model is told. */
    output: z.array(InputPart),
    /** Set when a command outlives the call: its item stays open until it ends, and later calls know it by this number. */
    processId: z.string().optional(),
  }),
  /** What a client says to the call of a tool of its own; the first to answer is believed. */
  z.object({
    type: z.literal("tool.answered"),
    v: v1,
    turnId,
    itemId: z.string(),
    content: z.array(InputPart),
    /** The tool failed, or nobody could carry it out. */
    failure: Failure.optional(),
  }),
  z.object({
    type: z.literal("approval.requested"),
    v: v1,
    turnId,
    approvalId: z.string(),
    question: ApprovalQuestion,
    /** Nobody could be asked: policy answers, and the question does not outlive its process. */
    isUnattended: z.literal(true).optional(),
    /** Declined by policy when nobody has answered by then; absent: it waits as long as it takes. */
    answerBy: z.number().optional(),
  }),
  z.object({
    type: z.literal("approval.resolved"),
    v: v1,
    turnId,
    approvalId: z.string(),
    decision: Decision,
    reason: z.string().optional(),
    /** To questions of the agent. */
    answers: UserAnswers.optional(),
    /** To the question of an MCP server. */
    content: z.unknown().optional(),
    /** Of permissions: only these of what was asked for; absent: all of it. */
    granted: Permissions.optional(),
  }),
  /** The tools of an MCP server as they are from now on: stored when it was reached and whenever its list changed. */
  z.object({
    type: z.literal("mcp.listed"),
    v: v1,
    turnId,
    server: z.string(),
    transport: z.enum(["stdio", "http"]),
    /** The server reaches the network: by its own address, or because its sandbox is open. */
    hasNetwork: z.boolean(),
    protocolVersion: z.string(),
    /** `definition` is a hash of everything the server says about the tool; `offeredAs` is the name for models. */
    tools: z.array(z.object({ tool: z.string(), offeredAs: z.string(), definition: z.string() })),
    /** Tools of an earlier list of this thread whose definition is another one now. */
    changed: z.array(z.string()),
  }),
  ...sideRequestEvents,
  z.object({
    type: z.literal("path.violated"),
    v: v1,
    turnId,
    callId: z.string().optional(),
    path: z.string(),
    /** Where the offending file was moved; absent when it could only be reported. */
    quarantinedTo: z.string().optional(),
  }),
  ...hopEvents,
  ...clientEvents,
  ...taskEvents,
]);
export type EventBody = z.infer<typeof EventBody>;
export type EventType = EventBody["type"];
export type EventOf<T extends EventType> = Extract<EventBody, { type: T }>;

/** One stored fact with its place in the journal and in its chain. */
export interface StoredEvent<B extends EventBody = EventBody> {
  /** Place in the whole journal; the cursor readers keep. */
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
}
