/**
 * Params of the methods that Heddle answers, by method. Unknown fields are ignored, as in the original; a known field of
 * another type is refused in the words of the original.
 */
import { z } from "zod";
import { ClientContext, GoalStatus, Personality, ReasoningSummary } from "@heddle/protocol";
import { DynamicToolParam } from "./client-tools.ts";
import { UserInput } from "./input.ts";
import { HOST_PARAMS } from "./params-host.ts";
import { ApprovalPolicyParam, CollaborationModeParam, SandboxModeParam, SandboxPolicyParam } from "./settings.ts";

const text = z.string().nullish();
const count = z.int().nonnegative().nullish();
const flag = z.boolean().nullish();
const threadId = z.string();
const ofThread = z.object({ threadId });

/** What thread/start, thread/resume and thread/fork may choose for the turns to come. */
const choices = {
  model: text,
  modelProvider: text,
  cwd: text,
  approvalPolicy: ApprovalPolicyParam.nullish(),
  sandbox: SandboxModeParam.nullish(),
  config: z.record(z.string(), z.unknown()).nullish(),
  baseInstructions: text,
  developerInstructions: text,
  personality: Personality.nullish(),
  serviceTier: text,
  permissions: text,
};

const sortDirection = z.enum(["asc", "desc"]).nullish();
const page = { cursor: text, limit: count };
const sortedPage = { ...page, sortDirection };
const itemsView = z.enum(["notLoaded", "summary", "full"]).nullish();
const sourceKinds = z
  .array(
    z.enum([
      "cli",
      "vscode",
      "exec",
      "appServer",
      "subAgent",
      "subAgentReview",
      "subAgentCompact",
      "subAgentThreadSpawn",
      "subAgentOther",
      "unknown",
    ]),
  )
  .nullish();

/** What a turn may choose, and what may be changed between turns. */
const turnChoices = {
  /** Of Heddle alone; other keys are passed over. */
  config: z.object({ envelope: text, ceiling: text, runner: text }).nullish(),
  cwd: text,
  approvalPolicy: ApprovalPolicyParam.nullish(),
  sandboxPolicy: SandboxPolicyParam.nullish(),
  permissions: text,
  model: text,
  effort: text,
  summary: ReasoningSummary.nullish(),
  /** null: none. */
  serviceTier: text,
  personality: Personality.nullish(),
  disabledPluginIds: z.array(z.string()).nullish(),
};

const AdditionalContext = z
  .record(z.string(), z.object({ kind: ClientContext.shape.kind, value: z.string() }))
  .nullish();

/** Any value, null too, but not left out. */
const given = z.unknown().refine((value) => value !== undefined);
const attachment = { attachmentType: z.string(), identityKey: z.string() };

const ReviewTarget = z.discriminatedUnion("type", [
  z.object({ type: z.literal("uncommittedChanges") }),
  z.object({ type: z.literal("baseBranch"), branch: z.string() }),
  z.object({ type: z.literal("commit"), sha: z.string(), title: text }),
  z.object({ type: z.literal("custom"), instructions: z.string() }),
]);

export const CODEX_PARAMS = {
  initialize: z.object({
    clientInfo: z.object({ name: z.string(), title: text, version: z.string() }),
    capabilities: z
      .object({ experimentalApi: flag, optOutNotificationMethods: z.array(z.string()).nullish() })
      .nullish(),
  }),
  "thread/start": z.object({
    ...choices,
    dynamicTools: z.array(DynamicToolParam).nullish(),
    ephemeral: flag,
    /** Beyond Codex: the same id again is the same thread. */
    clientThreadId: z.string().min(1).max(256).nullish(),
  }),
  "thread/resume": z.object({
    ...choices,
    threadId,
    path: text,
    /** Refused: the past of a thread is what is stored. */
    history: z.unknown().optional(),
    excludeTurns: flag,
    initialTurnsPage: z.object({ limit: count, sortDirection, itemsView }).nullish(),
  }),
  "thread/fork": z.object({
    ...choices,
    threadId,
    path: text,
    lastTurnId: text,
    beforeTurnId: text,
    ephemeral: flag,
    excludeTurns: flag,
    /** These are refused: forks are threads like any other, and nothing is predicted. */
    attachToSource: flag,
    experimentalPredictionMode: flag,
    experimentalDisablePredictionMcp: flag,
  }),
  "thread/list": z.object({
    ...sortedPage,
    sortKey: z.enum(["created_at", "updated_at", "recency_at", "section_position"]).nullish(),
    excludedThreadIds: z.array(z.string()).nullish(),
    modelProviders: z.array(z.string()).nullish(),
    originators: z.array(z.string()).nullish(),
    sourceKinds,
    sectionId: text,
    projectId: text,
    parentThreadId: text,
    ancestorThreadId: text,
    attachedToThreadId: text,
    archived: flag,
    cwd: z.union([z.string(), z.array(z.string())]).nullish(),
    searchTerm: text,
  }),
  "thread/read": z.object({ threadId, includeTurns: flag }),
  "thread/turns/list": z.object({
    threadId,
    ...sortedPage,
    itemsView,
  }),
  "thread/items/list": z.object({
    threadId,
    turnId: text,
    ...sortedPage,
    cursor: z.union([z.string(), z.object({ type: z.string().optional(), itemId: z.string() })]).nullish(),
  }),
  "thread/loaded/list": z.object(page),
  "thread/unsubscribe": ofThread,
  "thread/name/set": z.object({ threadId, name: z.string() }),
  "thread/archive": ofThread,
  "thread/unarchive": ofThread,
  "thread/delete": ofThread,
  "thread/compact/start": ofThread,
  "turn/start": z.object({
    threadId,
    input: z.array(UserInput),
    clientUserMessageId: text,
    ...turnChoices,
    serviceTierForTurn: text,
    additionalContext: AdditionalContext,
    outputSchema: z.unknown().optional(),
    collaborationMode: CollaborationModeParam.nullish(),
    /** Refused: what a tool said comes from the tool. */
    toolOutput: z.unknown().optional(),
  }),
  "turn/steer": z.object({
    threadId,
    expectedTurnId: z.string(),
    input: z.array(UserInput),
    clientUserMessageId: text,
    additionalContext: AdditionalContext,
  }),
  "turn/interrupt": z.object({ threadId, turnId: z.string() }),
  "model/list": z.object({ ...page, includeHidden: flag }),
  "permissionProfile/list": z.object({ ...page, cwd: text }),
  "skills/list": z.object({ cwds: z.array(z.string()).nullish() }),
  /** `detached` was understood by earlier versions of the original: the review has a thread of its own. */
  "review/start": z.object({ threadId, target: ReviewTarget, delivery: z.enum(["inline", "detached"]).nullish() }),
  "thread/shellCommand": z.object({ threadId, command: z.string(), timeoutMs: count }),
  "thread/inject_items": z.object({ threadId, items: z.array(z.unknown()) }),
  "thread/revert": z.object({ threadId, beforeTurnId: z.string() }),
  "thread/metadata/update": z.object({
    threadId,
    gitInfo: z.object({ sha: text, branch: text, originUrl: text }).nullish(),
  }),
  "thread/settings/update": z.object({
    threadId,
    ...turnChoices,
    collaborationMode: CollaborationModeParam.nullish(),
  }),
  "thread/goal/set": z.object({
    threadId,
    objective: text,
    status: GoalStatus.nullish(),
    tokenBudget: z.int().positive().nullish(),
  }),
  "thread/goal/get": ofThread,
  "thread/goal/clear": ofThread,
  "thread/queue/add": z.object({ threadId, input: z.array(UserInput), clientUserMessageId: z.string() }),
  "thread/queue/list": z.object({ threadId, ...page }),
  "thread/queue/update": z.object({ threadId, queuedSubmissionId: z.string(), input: z.array(UserInput) }),
  "thread/queue/reorder": z.object({ threadId, queuedSubmissionIds: z.array(z.string()) }),
  "thread/queue/start": z.object({ threadId, queuedSubmissionId: text }),
  "thread/queue/delete": z.object({ threadId, queuedSubmissionId: z.string() }),
  "thread/attachment/add": z.object({ threadId, ...attachment, payload: given }),
  "thread/attachment/list": z.object({ threadId, ...page }),
  "thread/attachment/remove": z.object({ threadId, ...attachment }),
  "thread/attachmentOwner/list": z.object({ ...attachment, ...page, archived: flag }),
  "turn/settings/update": z.strictObject({
    threadId,
    turnId: z.string(),
    approvalsReviewer: z.enum(["user", "auto_review", "guardian_subagent"]).nullish(),
    model: text,
    effort: text,
    summary: z.enum(["auto", "concise", "detailed", "none"]).nullish(),
    serviceTier: text,
  }),
  "thread/backgroundTerminals/list": z.object({ threadId, ...page }),
  "thread/backgroundTerminals/terminate": z.object({ threadId, processId: z.string() }),
  "thread/backgroundTerminals/clean": ofThread,
  /** What else the original takes is for its maker's cloud. MCP servers are not asked here, so none can be disabled. */
  "thread/sample": z.object({
    threadId,
    expectedTurnId: z.string(),
    prompt: z.string(),
    effort: z.string().min(1).nullish(),
    disableMcp: z.boolean().optional(),
    threadSource: text,
    turnTrigger: text,
    responsesapiClientMetadata: z.record(z.string(), z.string()).nullish(),
  }),
  "thread/sample/cancel": z.strictObject({ requestId: z.union([z.string(), z.int()]) }),
  "thread/search": z.object({
    ...page,
    sortKey: z.enum(["created_at", "updated_at", "recency_at"]).nullish(),
    sortDirection,
    sourceKinds,
    archived: flag,
    searchTerm: z.string(),
  }),
  ...HOST_PARAMS,
} as const;

export type SupportedMethod = keyof typeof CODEX_PARAMS;
export type CodexParams<Method extends SupportedMethod> = z.infer<(typeof CODEX_PARAMS)[Method]>;

export function isSupported(method: string): method is SupportedMethod {
  return Object.hasOwn(CODEX_PARAMS, method);
}

export type BeginParams = CodexParams<"thread/start" | "thread/resume" | "thread/fork">;

/** Fields that a client sets and that have no effect here; it gets a warning. */
export function fieldsWithoutEffect({ config }: BeginParams): string[] {
  const keys = Object.keys(config ?? {}).filter((key) => isKeyWithoutEffect(key));
  return keys.map((key) => `config.${key}`);
}

/** Providers and files to read are those of the server's own configuration. */
export function isKeyWithoutEffect(key: string): boolean {
  return /^(model_providers|(model|experimental)_instructions_file)\b/.test(key);
}

/** Fields that only clients with `experimentalApi` may set. */
export const EXPERIMENTAL_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "thread/start": [
    "allowProviderModelFallback",
    "daybreakEnabled",
    "dynamicTools",
    "environments",
    "experimentalRawEvents",
    "historyMode",
    "mockExperimentalField",
    "multiAgentMode",
    "permissions",
    "projectId",
    "runtimeWorkspaceRoots",
    "selectedCapabilityRoots",
  ],
  "thread/resume": ["history", "initialTurnsPage", "path", "permissions", "runtimeWorkspaceRoots"],
  "thread/fork": [
    "attachToSource",
    "beforeTurnId",
    "deferGoalContinuation",
    "experimentalDisablePredictionMcp",
    "experimentalPredictionMode",
    "path",
    "permissions",
    "runtimeWorkspaceRoots",
  ],
  "thread/list": ["ancestorThreadId", "attachedToThreadId", "parentThreadId", "projectId"],
  "thread/metadata/update": ["daybreakEnabled", "projectId"],
  "turn/start": [
    "additionalContext",
    "collaborationMode",
    "cyberAccessProgram",
    "environments",
    "multiAgentMode",
    "permissions",
    "responsesapiClientMetadata",
    "responsesapiClientMetadataPatch",
    "runtimeWorkspaceRoots",
  ],
  "turn/steer": ["additionalContext", "responsesapiClientMetadata", "responsesapiClientMetadataPatch"],
  "command/exec": ["permissionProfile"],
};
