/**
 * Params of the methods that Heddle answers. Unknown fields are passed over, as the original does; what is named here and
 * has another type is refused in the original's words.
 */
import { z } from "zod";
import { DynamicToolParam } from "./client-tools.ts";
import { UserInput } from "./input.ts";
import { ApprovalPolicyParam, CollaborationModeParam, SandboxModeParam, SandboxPolicyParam } from "./settings.ts";

const text = z.string().nullish();
const count = z.int().nonnegative().nullish();
const threadId = z.string();

export const InitializeParams = z.object({
  clientInfo: z.object({ name: z.string(), title: text, version: z.string() }),
  capabilities: z
    .object({
      experimentalApi: z.boolean().nullish(),
      optOutNotificationMethods: z.array(z.string()).nullish(),
    })
    .nullish(),
});
export type InitializeParams = z.infer<typeof InitializeParams>;

/** What thread/start, thread/resume and thread/fork may choose for the turns to come. */
const choices = {
  model: text,
  modelProvider: text,
  cwd: text,
  approvalPolicy: ApprovalPolicyParam.nullish(),
  sandbox: SandboxModeParam.nullish(),
  config: z.record(z.string(), z.unknown()).nullish(),
  baseInstructions: z.unknown().optional(),
  developerInstructions: z.unknown().optional(),
  permissions: z.unknown().optional(),
};

/** What a client sets there and nobody heeds here; it is told so. */
export function unheeded(params: ThreadStartParams | ThreadResumeParams | ThreadForkParams): readonly string[] {
  const { baseInstructions, developerInstructions, permissions, config } = params;
  const fields = Object.entries({ baseInstructions, developerInstructions, permissions });
  const keys = Object.keys(config ?? {}).filter((key) => isUnheededKey(key));
  return [
    ...fields.filter(([, value]) => value !== undefined && value !== null).map(([name]) => name),
    ...keys.map((key) => `config.${key}`),
  ];
}

/** The server's own configuration says which servers and providers there are. */
export function isUnheededKey(key: string): boolean {
  return /^(mcp_servers|model_providers)\b/.test(key);
}

export const ThreadStartParams = z.object({
  ...choices,
  dynamicTools: z.array(DynamicToolParam).nullish(),
  ephemeral: z.boolean().nullish(),
  /** Beyond Codex: the same id again is the same thread. */
  clientThreadId: z.string().min(1).max(256).nullish(),
});
export type ThreadStartParams = z.infer<typeof ThreadStartParams>;

export const ThreadResumeParams = z.object({ ...choices, threadId, excludeTurns: z.boolean().nullish() });
export type ThreadResumeParams = z.infer<typeof ThreadResumeParams>;

export const ThreadForkParams = z.object({
  ...choices,
  threadId,
  lastTurnId: text,
  ephemeral: z.boolean().nullish(),
  excludeTurns: z.boolean().nullish(),
});
export type ThreadForkParams = z.infer<typeof ThreadForkParams>;

const sortDirection = z.enum(["asc", "desc"]).nullish();
const page = { cursor: text, limit: count, sortDirection };

export const ThreadListParams = z.object({
  ...page,
  sortKey: z.enum(["created_at", "updated_at", "recency_at", "section_entered_at"]).nullish(),
  excludedThreadIds: z.array(z.string()).nullish(),
  modelProviders: z.array(z.string()).nullish(),
  sourceKinds: z.array(z.string()).nullish(),
  archived: z.boolean().nullish(),
  cwd: z.union([z.string(), z.array(z.string())]).nullish(),
  searchTerm: text,
});
export type ThreadListParams = z.infer<typeof ThreadListParams>;

export const ThreadReadParams = z.object({ threadId, includeTurns: z.boolean().nullish() });
export const ThreadParams = z.object({ threadId });
export const ThreadNameParams = z.object({ threadId, name: z.string() });
export const ThreadTurnsListParams = z.object({
  threadId,
  ...page,
  itemsView: z.enum(["notLoaded", "summary", "full"]).nullish(),
});
export const ThreadItemsListParams = z.object({
  threadId,
  turnId: text,
  ...page,
  cursor: z.union([z.string(), z.object({ itemId: z.string() })]).nullish(),
});
export const PageParams = z.object({ cursor: text, limit: count });
export const ModelListParams = z.object({ cursor: text, limit: count, includeHidden: z.boolean().nullish() });
export const CwdPageParams = z.object({ cursor: text, limit: count, cwd: text });
export const SkillsListParams = z.object({ cwds: z.array(z.string()).nullish() });
export const NoParams = z.object({});

export const TurnStartParams = z.object({
  threadId,
  input: z.array(UserInput),
  clientUserMessageId: text,
  cwd: text,
  approvalPolicy: ApprovalPolicyParam.nullish(),
  sandboxPolicy: SandboxPolicyParam.nullish(),
  model: text,
  effort: text,
  outputSchema: z.unknown().optional(),
  collaborationMode: CollaborationModeParam.nullish(),
});
export type TurnStartParams = z.infer<typeof TurnStartParams>;

export const TurnSteerParams = z.object({ threadId, expectedTurnId: z.string(), input: z.array(UserInput) });
export const TurnInterruptParams = z.object({ threadId, turnId: z.string() });

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
