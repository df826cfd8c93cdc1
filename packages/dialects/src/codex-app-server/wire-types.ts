/**
 * What the server sends, as schemas: the types of what is sent and the published JSON Schemas both come from here. Fields of
 * items and settings that depend on their kind are left open.
 */
import { z } from "zod";
import { GoalStatus } from "@heddle/protocol";
import { UserInput } from "./input.ts";
import type { CodexThreadStatus } from "./shapes.ts";

const text = z.string();
const maybe = text.nullable();
const count = z.number();
const maybeCount = count.nullable();
const nothing = z.null();

const RequestId = z.union([text, count]);

const ThreadStatus: z.ZodType<CodexThreadStatus> = z.discriminatedUnion("type", [
  z.object({ type: z.literal("notLoaded") }),
  z.object({ type: z.literal("idle") }),
  z.object({ type: z.literal("systemError") }),
  z.object({ type: z.literal("active"), activeFlags: z.array(z.literal("waitingOnApproval")) }),
]);

const httpStatus = z.object({ httpStatusCode: maybeCount });
const CodexErrorInfoWire = z.union([
  z.enum([
    "contextWindowExceeded",
    "sessionBudgetExceeded",
    "rateLimitExceeded",
    "serverOverloaded",
    "modelNotFound",
    "internalServerError",
    "unauthorized",
    "badRequest",
    "sandboxError",
    "other",
  ]),
  z.object({ httpConnectionFailed: httpStatus }),
  z.object({ responseStreamDisconnected: httpStatus }),
]);

const TurnError = z.object({
  message: text,
  codexErrorInfo: CodexErrorInfoWire,
  additionalDetails: maybe,
  misalignment: nothing,
  /** Heddle's own code. */
  code: text,
});

const ThreadItem = z.looseObject({
  type: z.enum([
    "userMessage",
    "agentMessage",
    "reasoning",
    "commandExecution",
    "fileChange",
    "mcpToolCall",
    "dynamicToolCall",
    "collabAgentToolCall",
    "plan",
    "imageView",
    "webSearch",
    "contextCompaction",
    "enteredReviewMode",
    "exitedReviewMode",
  ]),
  id: text,
  startedAtMs: maybeCount,
  completedAtMs: maybeCount,
});

const Turn = z.object({
  id: text,
  rootTurnId: text,
  items: z.array(ThreadItem),
  itemsView: z.enum(["notLoaded", "summary", "full"]),
  status: z.enum(["inProgress", "completed", "interrupted", "failed"]),
  error: TurnError.nullable(),
  /** Seconds. */
  startedAt: maybeCount,
  completedAt: maybeCount,
  durationMs: maybeCount,
  /** Heddle's own, with the end of a turn: what its requests cost, where that is known. */
  costUsd: count.exactOptional(),
});

const SandboxPolicy = z.discriminatedUnion("type", [
  z.object({ type: z.literal("dangerFullAccess") }),
  z.object({ type: z.literal("readOnly"), networkAccess: z.boolean() }),
  z.object({
    type: z.literal("workspaceWrite"),
    writableRoots: z.array(text),
    networkAccess: z.boolean(),
    excludeTmpdirEnvVar: z.boolean(),
    excludeSlashTmp: z.boolean(),
  }),
]);

const GitInfo = z.object({ sha: maybe, branch: maybe, originUrl: maybe });

const Thread = z.object({
  id: text,
  environments: z.array(z.record(text, z.unknown())),
  extra: nothing,
  sessionId: text,
  forkedFromId: maybe,
  parentThreadId: maybe,
  preview: text,
  ephemeral: z.boolean(),
  section: nothing,
  sectionEnteredAt: nothing,
  projectId: nothing,
  historyMode: z.literal("paginated"),
  modelProvider: text,
  model: maybe,
  reasoningEffort: maybe,
  createdAt: count,
  updatedAt: count,
  recencyAt: count,
  status: ThreadStatus,
  path: maybe,
  cwd: text,
  cliVersion: text,
  originator: text,
  source: z.union([
    z.enum(["vscode", "exec"]),
    z.object({
      subAgent: z.object({
        thread_spawn: z.object({
          parent_thread_id: text,
          depth: count,
          agent_path: nothing,
          agent_nickname: nothing,
          agent_role: nothing,
        }),
      }),
    }),
  ]),
  canAcceptDirectInput: z.boolean(),
  threadSource: nothing,
  agentNickname: nothing,
  agentRole: nothing,
  gitInfo: GitInfo.nullable(),
  name: maybe,
  daybreakEnabled: nothing,
  turns: z.array(Turn),
});

const ThreadGoal = z.object({
  threadId: text,
  objective: text,
  status: GoalStatus,
  tokenBudget: maybeCount,
  tokensUsed: count,
  timeUsedSeconds: count,
  createdAt: count,
  updatedAt: count,
});

const QueuedSubmission = z.object({ id: text, input: z.array(UserInput), clientUserMessageId: text });
const ThreadBackgroundTerminal = z.object({
  itemId: text,
  processId: text,
  command: text,
  cwd: text,
  osPid: maybeCount,
  cpuPercent: maybeCount,
  rssKb: maybeCount,
});
const ThreadSearchResult = z.object({ thread: Thread, snippet: text });
const HookRunSummary = z.looseObject({
  id: text,
  eventName: text,
  status: z.enum(["running", "completed", "failed", "blocked"]),
  startedAt: count,
  completedAt: maybeCount,
  durationMs: maybeCount,
});

/** Types with a name of their own. */
export const WIRE_TYPES = {
  RequestId,
  ThreadStatus,
  CodexErrorInfo: CodexErrorInfoWire,
  TurnError,
  ThreadItem,
  Turn,
  SandboxPolicy,
  GitInfo,
  Thread,
  ThreadGoal,
  ThreadGoalStatus: GoalStatus,
  QueuedSubmission,
  ThreadBackgroundTerminal,
  ThreadSearchResult,
  HookRunSummary,
  UserInput,
} as const;

const none = z.object({});
const page = { nextCursor: maybe };
const pages = { ...page, backwardsCursor: maybe };
const settings = {
  model: text,
  modelProvider: text,
  cwd: text,
  approvalPolicy: text,
  sandbox: SandboxPolicy,
  reasoningEffort: maybe,
};

/** Answers whose shape is said; those of other methods are any object. */
export const WIRE_ANSWERS: Readonly<Record<string, z.ZodType>> = {
  "thread/start": z.looseObject({ thread: Thread, ...settings }),
  "thread/resume": z.looseObject({ thread: Thread, ...settings }),
  "thread/fork": z.looseObject({ thread: Thread, ...settings }),
  "thread/list": z.looseObject({ data: z.array(Thread), ...pages }),
  "thread/read": z.looseObject({ thread: Thread }),
  "thread/turns/list": z.object({ data: z.array(Turn), ...pages }),
  "thread/items/list": z.object({ data: z.array(z.looseObject({ turnId: text, item: ThreadItem })), ...pages }),
  "thread/unsubscribe": z.object({ status: z.enum(["unsubscribed", "notSubscribed", "notLoaded"]) }),
  "thread/unarchive": z.object({ thread: Thread }),
  "thread/metadata/update": z.object({ thread: Thread }),
  "thread/revert": z.object({ thread: Thread, turnsBackwardsCursor: maybe, itemsBackwardsCursor: maybe }),
  "thread/goal/set": z.object({ goal: ThreadGoal }),
  "thread/goal/get": z.object({ goal: ThreadGoal.nullable() }),
  "thread/goal/clear": z.object({ cleared: z.boolean() }),
  "thread/sample": z.object({
    responseId: text,
    sourceTurnId: text,
    text: maybe,
    inputTokens: maybeCount,
    cachedInputTokens: maybeCount,
    outputTokens: maybeCount,
  }),
  "thread/sample/cancel": none,
  "thread/queue/add": z.object({ queuedSubmission: QueuedSubmission }),
  "thread/queue/list": z.object({ data: z.array(QueuedSubmission), ...page }),
  "thread/queue/update": z.object({ queuedSubmission: QueuedSubmission }),
  "thread/queue/start": z.object({ turn: Turn }),
  "thread/queue/delete": z.object({ deleted: z.boolean() }),
  "thread/backgroundTerminals/list": z.object({ data: z.array(ThreadBackgroundTerminal), ...page }),
  "thread/backgroundTerminals/terminate": z.object({ terminated: z.boolean() }),
  "thread/search": z.object({ data: z.array(ThreadSearchResult), ...pages }),
  "review/start": z.object({ turn: Turn, reviewThreadId: text }),
  "turn/start": z.object({ turn: Turn }),
  "turn/steer": z.object({ turnId: text }),
  "turn/interrupt": none,
};

const at = { threadId: text, turnId: text };
const stream = z.enum(["stdout", "stderr"]);
const FuzzyFileSearchResult = z.object({
  root: text,
  path: text,
  match_type: z.enum(["file", "directory"]),
  file_name: text,
  score: count,
  indices: z.array(count).nullable(),
});
const delta = z.looseObject({ ...at, itemId: text, delta: text });
const ofThread = z.looseObject({ threadId: text });

export const WIRE_NOTIFICATIONS: Readonly<Record<string, z.ZodType>> = {
  error: z.looseObject({ ...at, error: TurnError, willRetry: z.boolean() }),
  warning: z.looseObject({ threadId: maybe, message: text }),
  configWarning: z.object({ summary: text, details: maybe }),
  deprecationNotice: z.object({ summary: text, details: maybe }),
  "thread/started": z.object({ thread: Thread }),
  "thread/status/changed": z.looseObject({ threadId: text, status: ThreadStatus }),
  "thread/archived": ofThread,
  "thread/unarchived": ofThread,
  "thread/deleted": ofThread,
  "thread/closed": ofThread,
  "thread/reverted": ofThread,
  "thread/name/updated": z.looseObject({ threadId: text, threadName: maybe }),
  "thread/goal/updated": z.looseObject({ threadId: text, turnId: maybe, goal: ThreadGoal }),
  "thread/goal/cleared": ofThread,
  "thread/queue/changed": ofThread,
  "thread/attachment/updated": z.looseObject({
    threadId: text,
    attachmentType: text,
    identityKey: text,
    attachmentId: text,
    operation: z.enum(["created", "deleted"]),
  }),
  "thread/settings/updated": z.looseObject({ threadId: text, threadSettings: z.record(text, z.unknown()) }),
  "thread/tokenUsage/updated": z.looseObject({ ...at, tokenUsage: z.record(text, z.unknown()) }),
  "turn/started": z.looseObject({ threadId: text, turn: Turn }),
  "turn/completed": z.looseObject({ threadId: text, turn: Turn }),
  "turn/diff/updated": z.looseObject({ ...at, diff: text }),
  "turn/plan/updated": z.looseObject({ ...at, explanation: maybe, plan: z.array(z.record(text, z.unknown())) }),
  "hook/started": z.looseObject({ threadId: text, turnId: maybe, run: HookRunSummary }),
  "hook/completed": z.looseObject({ threadId: text, turnId: maybe, run: HookRunSummary }),
  "item/started": z.looseObject({ ...at, item: ThreadItem, startedAtMs: count }),
  "item/completed": z.looseObject({ ...at, item: ThreadItem, completedAtMs: count }),
  "item/agentMessage/delta": delta,
  "item/plan/delta": delta,
  "item/commandExecution/outputDelta": delta,
  "item/reasoning/summaryTextDelta": delta,
  "item/reasoning/textDelta": delta,
  "item/reasoning/summaryPartAdded": z.looseObject({ ...at, itemId: text, summaryIndex: count }),
  "mcpServer/startupStatus/updated": z.looseObject({ threadId: maybe, name: text, status: text }),
  "serverRequest/resolved": z.looseObject({ threadId: text, requestId: RequestId }),
  "fuzzyFileSearch/sessionUpdated": z.object({ sessionId: text, query: text, files: z.array(FuzzyFileSearchResult) }),
  "fuzzyFileSearch/sessionCompleted": z.object({ sessionId: text }),
  "process/outputDelta": z.object({ processHandle: text, stream, deltaBase64: text, capReached: z.boolean() }),
  "process/exited": z.object({
    processHandle: text,
    exitCode: count,
    outputDrainTimedOut: z.boolean(),
    stdout: text,
    stdoutCapReached: z.boolean(),
    stderr: text,
    stderrCapReached: z.boolean(),
  }),
};

const question = { ...at, itemId: text };
export const WIRE_QUESTIONS: Readonly<Record<string, z.ZodType>> = {
  "item/commandExecution/requestApproval": z.looseObject({ ...question, command: text, cwd: text }),
  "item/permissions/requestApproval": z.looseObject({
    ...question,
    cwd: text,
    reason: maybe,
    permissions: z.unknown(),
  }),
  "item/fileChange/requestApproval": z.looseObject({ ...question, reason: maybe }),
  "item/tool/requestUserInput": z.looseObject({
    ...question,
    questions: z.array(z.unknown()),
    isBlocking: z.boolean(),
  }),
  "item/tool/call": z.looseObject({ ...at, callId: text, tool: text, namespace: maybe, arguments: z.unknown() }),
  "mcpServer/elicitation/request": z.looseObject({ threadId: text, turnId: maybe, serverName: text, message: text }),
};
