/** Params of what is done with a thread besides its turns: goals, queue, settings, history, commands of the user, reviews. */
import { z } from "zod";
import { GoalStatus } from "@heddle/protocol";
import { UserInput } from "./input.ts";
import { ApprovalPolicyParam, CollaborationModeParam, SandboxPolicyParam } from "./settings.ts";

const text = z.string().nullish();
const count = z.int().nonnegative().nullish();
const threadId = z.string();

export const ReviewTargetParam = z.discriminatedUnion("type", [
  z.object({ type: z.literal("uncommittedChanges") }),
  z.object({ type: z.literal("baseBranch"), branch: z.string() }),
  z.object({ type: z.literal("commit"), sha: z.string(), title: text }),
  z.object({ type: z.literal("custom"), instructions: z.string() }),
]);
export type ReviewTargetParam = z.infer<typeof ReviewTargetParam>;

/** `detached` was understood by earlier versions of the original: the review has a thread of its own. */
export const ReviewStartParams = z.object({
  threadId,
  target: ReviewTargetParam,
  delivery: z.enum(["inline", "detached"]).nullish(),
});
export type ReviewStartParams = z.infer<typeof ReviewStartParams>;

export const ThreadShellCommandParams = z.object({ threadId, command: z.string(), timeoutMs: count });
export const ThreadInjectItemsParams = z.object({ threadId, items: z.array(z.unknown()) });
export const ThreadRevertParams = z.object({ threadId, beforeTurnId: z.string() });

/** What else the original takes is for its maker's cloud. MCP servers are never asked here, so there is none to disable. */
export const ThreadSampleParams = z.object({
  threadId,
  expectedTurnId: z.string(),
  prompt: z.string(),
  effort: z.string().min(1).nullish(),
  disableMcp: z.boolean().optional(),
  threadSource: text,
  turnTrigger: text,
  responsesapiClientMetadata: z.record(z.string(), z.string()).nullish(),
});
export const ThreadSampleCancelParams = z.strictObject({ requestId: z.union([z.string(), z.int()]) });

export const ThreadMetadataUpdateParams = z.object({
  threadId,
  gitInfo: z.object({ sha: text, branch: text, originUrl: text }).nullish(),
  projectId: text,
  daybreakEnabled: z.boolean().nullish(),
});

export const ThreadSettingsUpdateParams = z.object({
  threadId,
  cwd: text,
  approvalPolicy: ApprovalPolicyParam.nullish(),
  sandboxPolicy: SandboxPolicyParam.nullish(),
  model: text,
  effort: text,
  collaborationMode: CollaborationModeParam.nullish(),
});
export type ThreadSettingsUpdateParams = z.infer<typeof ThreadSettingsUpdateParams>;

export const ThreadGoalSetParams = z.object({
  threadId,
  objective: text,
  status: GoalStatus.nullish(),
  tokenBudget: z.int().positive().nullish(),
});

export const ThreadQueueAddParams = z.object({
  threadId,
  input: z.array(UserInput),
  clientUserMessageId: z.string(),
});
export const ThreadPageParams = z.object({ threadId, cursor: text, limit: count });
export const ThreadQueueDeleteParams = z.object({ threadId, queuedSubmissionId: z.string() });
export const TerminalTerminateParams = z.object({ threadId, processId: z.string() });

export const ThreadSearchParams = z.object({
  cursor: text,
  limit: count,
  sortKey: z.enum(["created_at", "updated_at", "recency_at"]).nullish(),
  sortDirection: z.enum(["asc", "desc"]).nullish(),
  sourceKinds: z.array(z.string()).nullish(),
  archived: z.boolean().nullish(),
  searchTerm: z.string(),
});
export type ThreadSearchParams = z.infer<typeof ThreadSearchParams>;
