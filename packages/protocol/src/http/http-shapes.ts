/** The shapes of answers and bodies of the HTTP door, for the server and for clients. Unknown fields of a request are refused, so that a misspelt one is noticed. */
import { z } from "zod";
import { ApprovalQuestion, Decision, Permissions, UserAnswers } from "../threads/approvals.ts";
import { ENVELOPE_EXAMPLES } from "../envelopes/built-in-envelopes.ts";
import { ApprovalPolicy, SandboxLevel, SandboxMode } from "../envelopes/envelope.ts";
import { Takeover } from "../events/agent-events.ts";
import { Failure } from "../events/event-parts.ts";
import { EventBody, TurnLimits, TurnSettings, TurnStatus, type StoredEvent } from "../events/events.ts";
import {
  AfterQuery,
  flag,
  Folder,
  Id,
  page,
  pageAfter,
  PageQuery,
  ThreadParams,
  time,
  wholeNumber,
} from "./http-parts.ts";
import { FileChangeEntry, InputPart, Item } from "../threads/items.ts";
import { InputRole } from "../threads/messages.ts";
import { Usage } from "../threads/model-output.ts";

export { ApprovalQuestion, EventBody, Failure, InputPart, Item, TurnSettings, Usage };
export { PageQuery, ThreadParams };
export * from "./http-task-shapes.ts";
export * from "./http-order-shapes.ts";
export * from "./http-work-shapes.ts";
export * from "./http-evidence-shapes.ts";
export * from "./http-envelope-shapes.ts";
export * from "./http-agent-shapes.ts";
export * from "./http-login-shapes.ts";
export * from "./http-conversation-shapes.ts";
export * from "./http-process-shapes.ts";
export type { LeftOut, StoredItem, StoredRun, StoredStream } from "./stored-run.ts";

const seq = z.number().int().describe("Dense, 1..n within the thread");
const TurnState = z.enum(["open", ...TurnStatus.options]);

export const McpEnvelopeParams = z.strictObject({ envelope: z.string().min(1).max(64).describe("By its name") });
export const TurnParams = ThreadParams.extend({ turnId: Id });
export const ApprovalParams = ThreadParams.extend({ approvalId: Id });

export const ThreadsQuery = PageQuery.extend({
  workspace: z.string().max(4096).optional().describe("Only threads that work in this folder"),
  archived: flag.optional().describe("true: archived threads; false or absent: the others"),
  search: z.string().max(200).optional().describe("Text in the name or the first input"),
  status: z.enum(["running", "idle"]).optional(),
  parent: Id.optional().describe("Only child threads of this thread; absent: no child threads"),
});

export const EventsQuery = z.strictObject({
  after: wholeNumber("after").optional().describe("The cursor to continue from; `Last-Event-ID` says the same"),
  deltas: flag.optional().describe("true: what running items add, live, as events named `delta`"),
  follow: flag.optional().describe("false: end when everything stored has been sent"),
});
const names = z
  .string()
  .min(1)
  .max(4_000)
  .transform((text) => text.split(","));
export const AllEventsQuery = EventsQuery.extend({
  only: z.literal("tasks").optional().describe("tasks: nothing but what happens to tasks"),
  types: names.optional().describe("Only events of these types, separated by commas"),
  streams: names.optional().describe("Only events, and deltas, of these threads and tasks, separated by commas"),
});

export const ItemsQuery = AfterQuery.extend({
  limit: wholeNumber("limit").optional().describe("1 to 500; 25 when absent"),
  turnId: Id.optional(),
  before: wholeNumber("before").optional().describe("The last ones that started before this seq; not with `after`"),
  brief: flag.optional().describe("true: without outputs, diffs and images, which `leftOutChars` counts"),
});

export const Thread = z.object({
  id: z.string(),
  workspace: z.string(),
  origin: z.string().describe("The door it came through"),
  title: z.string().optional(),
  name: z.string().optional(),
  agentName: z.string().optional().describe("By which other agents and users reach its agent"),
  preview: z.string().optional().describe("The beginning of its first input"),
  forkedFrom: z.object({ threadId: z.string(), seq }).optional(),
  parent: z
    .object({ threadId: z.string(), turnId: z.string(), itemId: z.string(), depth: z.int() })
    .optional()
    .describe("The thread that started it, by a call in one of its turns"),
  createdAt: time,
  updatedAt: time,
  turnCount: z.number().int(),
  status: z.enum(["running", "idle"]),
  lastTurnStatus: TurnState.optional(),
  isEphemeral: z.boolean(),
  isArchived: z.boolean(),
  taskId: z.string().optional().describe("The task that it was made for"),
  usage: Usage.describe("Of all its turns, the open one too"),
  costUsd: z.number().describe("Of requests with a known price"),
  unpriced: z.number().int().describe("Requests without one"),
  asks: z.number().int().describe("Questions that wait for an answer"),
});
export const ThreadDetail = Thread.extend({
  seq: seq.describe("The last event; follow after it"),
  takeover: Takeover.optional().describe(
    "How a person continues it by hand; absent: its agent has no program to do so",
  ),
});

export const Turn = z.object({
  id: z.string(),
  threadId: z.string(),
  status: TurnState,
  seq: seq.describe("Where it was admitted"),
  by: z.string().describe("Who asked for it: user:NAME of a principal, or system"),
  clientId: z.string().optional(),
  task: z.enum(["compact", "review", "shell", "goal", "outside", "message", "attached"]).optional(),
  input: z.array(InputPart),
  settings: TurnSettings,
  sandboxLevel: SandboxLevel.optional().describe("Which sandbox back-end ran it; absent: it never started"),
  runner: z.string().optional(),
  admittedAt: time,
  endedAt: time.optional(),
  durationMs: z.number().optional(),
  failure: Failure.optional(),
  usage: Usage.describe("So far, while it is open"),
  contextUsed: z.number().int().optional().describe("Tokens of its last request and answer: how full the context is"),
  costUsd: z.number().optional().describe("Absent: a price was not known"),
});

export const ItemEntry = z.object({
  seq: seq.describe("Where it started"),
  turnId: z.string(),
  item: Item,
  startedAt: time,
  completedAt: time.optional(),
  leftOutChars: z.number().int().optional().describe("Of a brief entry: how much of the item is not in it"),
});

export const Approval = z.object({
  id: z.string(),
  threadId: z.string(),
  turnId: z.string(),
  seq,
  askedAt: time,
  question: ApprovalQuestion,
  answerBy: time.optional().describe("Declined by policy then; absent: it waits"),
  mayAnswer: z.array(Decision).describe("The decisions that you may take; an owner may take more"),
  taskId: z.string().optional().describe("Of the task that the thread works for"),
  taskName: z.string().optional(),
});

export const ThreadDiffQuery = z.strictObject({ turnId: Id.optional().describe("Only what this turn edited") });
export const ThreadDiff = z.object({
  of: z.literal("recorded").describe("Edits as they were recorded; what commands wrote is not in it"),
  files: z.array(
    z.object({
      path: z.string(),
      kind: FileChangeEntry.shape.kind.describe("What the edits come to"),
      movedTo: z.string().optional(),
      added: z.number().int(),
      removed: z.number().int(),
      edits: z
        .array(z.object({ itemId: z.string(), turnId: z.string(), seq, diff: z.string() }))
        .describe("Unified diffs, oldest first"),
      diffTruncatedBytes: z.number().int().optional().describe("Of these diffs, left out when they were recorded"),
    }),
  ),
  count: z.number().int().describe("How many files there are; `files` may be fewer"),
  isCut: z.boolean().describe("Diffs or files were left out to keep it small"),
});
export type ThreadDiff = z.output<typeof ThreadDiff>;

export const StreamedEvent = z.object({
  threadId: z.string().describe("The stream it is in: of a thread, or of what `taskId` names"),
  taskId: z.string().optional().describe("Of an event of a task"),
  seq,
  position: z.number().int().describe("Position in the whole journal"),
  id: z.string(),
  at: time,
  author: z.string(),
  hash: z.string(),
  prevHash: z.string().optional().describe("Hash of the event before it in its stream"),
  body: EventBody,
});
export const StreamedDelta = z.object({
  threadId: z.string(),
  turnId: z.string(),
  itemId: z.string(),
  channel: z.enum(["text", "reasoningSummary", "reasoningText", "output"]),
  offset: z.number().int().optional().describe("Characters that the item had added before, since it started"),
  delta: z.string(),
});

/** Threads have plain UUIDs for ids. */
export function isTaskStream(stream: string): boolean {
  return stream.startsWith("task_");
}

export function streamedEvent(event: StoredEvent): StreamedEvent {
  const { stream, version, position, id, at, author, hash, prevHash, body } = event;
  const task = isTaskStream(stream) ? { taskId: stream } : {};
  const link = prevHash === undefined ? {} : { prevHash };
  return { threadId: stream, ...task, seq: version, position, id, at, author, hash, ...link, body };
}

export const ThreadPage = page(Thread);
export const TurnPage = page(Turn);
export const ItemPage = pageAfter(ItemEntry).extend({
  nextBefore: z
    .number()
    .int()
    .nullable()
    .optional()
    .describe("Of a page with `before`: `before` of the page that comes before it; null: this is the first"),
});
export const ApprovalList = z.object({ data: z.array(Approval) });
export const EventPage = pageAfter(StreamedEvent);

export const CreateThreadBody = z.strictObject({
  workspace: Folder.optional().describe("An existing folder; the server's own when absent"),
  name: z.string().max(200).optional(),
  clientId: Id.optional().describe("Repeat a request with the same id and it is the same thread"),
});
export const PatchThreadBody = z
  .strictObject({
    name: z.string().max(200).optional(),
    settings: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("What its next turns run with, as chat.settings.update takes it; null removes a key"),
  })
  .refine(({ name, settings }) => name !== undefined || settings !== undefined, "name or settings is missing");
export const ForkThreadBody = z.strictObject({
  atTurn: Id.optional().describe("The last turn to take over; the last ended one when absent"),
  workspace: Folder.optional(),
});

export const HopThreadBody = z.strictObject({
  to: Id.meta({ description: "The envelope to enter; `back`: the one that was left last", ...ENVELOPE_EXAMPLES }),
  reason: z.string().min(1).max(2000),
  carry: z.record(z.string(), z.unknown()).optional().describe("What the edge carries, by its schema"),
  outcome: z.unknown().optional().describe("What the envelope is left with"),
});
export const HopAnswer = z.object({
  from: z.string(),
  to: z.string(),
  envelopeHash: z.string(),
  depth: z.int().describe("How many envelopes can be gone back through"),
});

const Input = z
  .union([z.string().min(1), z.array(InputPart).min(1)])
  .transform((given) => (typeof given === "string" ? [{ type: "text" as const, text: given }] : given));

const EnvelopeName = z.string().max(64).meta(ENVELOPE_EXAMPLES);
const role = InputRole.optional().describe("context and quote are material for the agent; absent: a command");
export const StartTurnBody = z.strictObject({
  input: Input,
  role,
  clientId: Id.optional().describe("Repeat a request with the same id and it is the same turn"),
  workspace: Folder.optional().describe("The thread works there from here on"),
  runner: z
    .string()
    .max(64)
    .optional()
    .describe("Who carries out this turn and the next ones: embedded, or an agent program"),
  model: z.string().max(200).optional(),
  provider: z.string().max(200).optional(),
  effort: z.string().max(50).optional(),
  sandboxMode: SandboxMode.optional().describe("danger-full-access is only for the owner"),
  envelope: EnvelopeName.optional().describe("By its name; full and what has no sandbox is only for the owner"),
  ceiling: EnvelopeName.optional().describe("The widest envelope of the thread from here on; it can be lowered"),
  approvalPolicy: ApprovalPolicy.optional(),
  mode: z
    .enum(["plan", "default"])
    .optional()
    .describe("plan: the agent investigates, may ask, and proposes a plan; default: back to work"),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  limits: TurnLimits.optional(),
});
export const SteerBody = z.strictObject({ input: Input, role });
export const AnswerBody = z.strictObject({
  decision: Decision,
  reason: z.string().max(4000).optional().describe("Why: the agent learns it, and it is stored"),
  answers: UserAnswers.optional().meta({ description: "To questions of the agent, by their ids" }),
  content: z.unknown().optional().meta({ description: "To the question of an MCP server" }),
  granted: Permissions.optional().meta({
    description: "Of a permission request: grant only these; absent: all of it",
  }),
});
export const EmptyBody = z.strictObject({});

export const Accepted = z.object({ ok: z.literal(true) });
export const DONE = { ok: true } as const;
export const ErrorAnswer = z.object({ error: Failure });
export const Health = z.object({ ok: z.boolean() });
export const Ready = z.object({
  ok: z.boolean(),
  reasons: z.array(z.object({ code: z.string(), message: z.string() })),
  sandbox: SandboxLevel,
  redaction: z.enum(["values", "patterns"]).meta({
    description: "values: this process knows secrets and removes exactly them too; patterns: only known formats",
  }),
});
export type Ready = z.infer<typeof Ready>;
export const SandboxAnswer = z.object({
  level: SandboxLevel,
  backends: z.array(z.object({ name: z.string(), isUsable: z.boolean(), problem: z.string().optional() })),
});
export const ServerAnswer = z.object({
  version: z.string(),
  principal: z.object({ name: z.string(), role: z.enum(["owner", "user", "viewer"]) }),
  sandbox: SandboxAnswer,
});
export const ModelsQuery = z.strictObject({ provider: z.string().max(200).optional() });
export const ModelsAnswer = z.object({
  data: z.array(
    z.object({
      provider: z.string(),
      source: z.enum(["live", "cache", "static"]),
      isStale: z.boolean(),
      isLoggedIn: z.boolean(),
      models: z.array(
        z.looseObject({
          id: z.string(),
          name: z.string().optional(),
          contextTokens: z.number().int().optional(),
          price: z
            .looseObject({ input: z.number(), output: z.number(), cached: z.number().optional() })
            .optional()
            .describe("US dollars for a million tokens; absent: not known"),
        }),
      ),
      problem: z.object({ code: z.string(), message: z.string() }).optional(),
    }),
  ),
});
export const DoctorAnswer = z.object({
  data: z.array(
    z.object({
      name: z.string(),
      state: z.enum(["ok", "absent", "problem"]).describe("absent: worth knowing, no problem by itself"),
      detail: z.string(),
      fix: z.string().optional().describe("The command or the change that helps"),
    }),
  ),
  problems: z.number().int(),
});
export const AccountsAnswer = z.object({
  data: z.array(
    z.looseObject({ provider: z.string(), isLoggedIn: z.boolean(), source: z.string(), health: z.string() }),
  ),
});

/** As clients get them. */
export type Thread = z.output<typeof Thread>;
export type ThreadDetail = z.output<typeof ThreadDetail>;
export type ThreadPage = z.output<typeof ThreadPage>;
export type Turn = z.output<typeof Turn>;
export type TurnPage = z.output<typeof TurnPage>;
export type ItemPage = z.output<typeof ItemPage>;
export type EventPage = z.output<typeof EventPage>;
export type Approval = z.output<typeof Approval>;
export type ApprovalList = z.output<typeof ApprovalList>;
export type StreamedEvent = z.output<typeof StreamedEvent>;
export type StreamedDelta = z.output<typeof StreamedDelta>;
export type ServerAnswer = z.output<typeof ServerAnswer>;
export type SandboxAnswer = z.output<typeof SandboxAnswer>;
export type ModelsAnswer = z.output<typeof ModelsAnswer>;
export type DoctorAnswer = z.output<typeof DoctorAnswer>;
export type AccountsAnswer = z.output<typeof AccountsAnswer>;
export type HopAnswer = z.output<typeof HopAnswer>;
export type Accepted = z.output<typeof Accepted>;

/** As clients may write them. */
export type ThreadsQueryInput = z.input<typeof ThreadsQuery>;
export type CreateThreadInput = z.input<typeof CreateThreadBody>;
export type ForkThreadInput = z.input<typeof ForkThreadBody>;
export type HopThreadInput = z.input<typeof HopThreadBody>;
export type StartTurnInput = z.input<typeof StartTurnBody>;
export type AnswerInput = z.input<typeof AnswerBody>;
