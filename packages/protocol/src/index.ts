export { defined } from "./defined.ts";
export { imageTypeOf } from "./image-type.ts";
export { never } from "./never.ts";
export { canonical } from "./canonical.ts";
export { clockMs } from "./clock.ts";
export {
  ERROR_CODES,
  errorCodeOf,
  EXIT,
  exitCodeOf,
  HeddleError,
  hostFaultOr,
  isHeddleError,
  isRetryable,
  reasonOf,
  rpcCodeOf,
  toHeddleError,
  type ErrorCode,
  type HeddleErrorOptions,
} from "./errors.ts";
export { jsonProblem } from "./json-problem.ts";
export { PLAIN } from "./plain-issues.ts";
export {
  inputItemId,
  isUuid,
  newApprovalId,
  newCallId,
  newEventId,
  newItemId,
  newTaskId,
  newThreadId,
  newTurnId,
  uuidv7,
} from "./ids.ts";
export { ApprovalPolicy, Effect, Envelope, SandboxHolds, SandboxLevel, SandboxMode } from "./envelope.ts";
export { isSandboxMode } from "./sandbox-modes.ts";
export {
  ApprovalQuestion,
  Decision,
  HopRequest,
  Permissions,
  UserAnswers,
  UserQuestion,
  type ApprovalAnswer,
  type StoredAnswer,
} from "./approvals.ts";
export {
  MessagePhase,
  ModelOutputPart,
  Usage,
  type ModelToolCall,
  type Opaque,
  type Source,
  type WebSearch,
} from "./model-output.ts";
export { addUsage, NO_USAGE, usageInSnakeCase } from "./usage.ts";
export {
  FileChangeEntry,
  InputPart,
  Item,
  ItemStatus,
  PlanStep,
  type ItemDelta,
  type ItemOf,
  type NoticeText,
  type ItemType,
  grownItem,
} from "./items.ts";
export {
  ClientContext,
  EventBody,
  Personality,
  ReasoningSummary,
  ToolOutcomeKind,
  TurnLimits,
  TurnSettings,
  BroughtServer,
  EnvironmentPolicy,
  SearchKind,
  SearchOptions,
  TurnStatus,
  Verbosity,
  type EventOf,
  type EventType,
  type HopScope,
  type StoredEvent,
} from "./events.ts";
export {
  INBOX,
  isUser,
  OWN_NAMES,
  OWNER,
  principalName,
  readAuthor,
  UNNAMED,
  type Author,
  type By,
  type UserAuthor,
} from "./authors.ts";
export { Failure, Holder } from "./event-parts.ts";
export { nextGoal, type StandingGoal } from "./standing-goal.ts";
export { FIRST_EPOCH, holderNamed, leaseLost, ownerOf, type Lease } from "./leases.ts";
export { ConversationEntry, GitInfoChange, Goal, GoalStatus, type ClientTool } from "./thread-facts.ts";
export {
  isNotificationEvent,
  isOutsideThreads,
  isTaskEvent,
  type NotificationEventBody,
  type TaskEventBody,
} from "./task-event-kinds.ts";
export { afterEvents, checkRunOf, nextTask } from "./task-machine.ts";
export {
  budgetOf,
  hasEnded,
  hasOwnTree,
  isObstructed,
  TASK_STATES,
  type TaskRecord,
  type TaskSpent,
  type TaskState,
} from "./task-record.ts";
export type { CheckResult, CheckViolation, LeafCheck, LeafCheckOf, TaskBaseline } from "./task-checks.ts";
export type { Culprit, PromptReason, WaitCause } from "./task-events.ts";
export { CODEX_VERSION } from "./codex-version.ts";
export { MCP_STARTUP_TIMEOUT_MS, MCP_TOOL_TIMEOUT_MS } from "./mcp-limits.ts";
export {
  McpApproval,
  McpHttpServer,
  McpServerConfig,
  McpStdioServer,
  type McpServerInput,
  type McpState,
} from "./mcp.ts";
export type { ClientAct } from "./client-events.ts";
export type {
  BegunMcpLogin,
  McpAuthority,
  McpAuthStatus,
  McpCode,
  McpIssuers,
  McpLoginRequest,
  McpTokens,
  McpTokenSource,
} from "./mcp-login.ts";
export { HookConfig, HookEvent, HookOutput } from "./hooks.ts";
export { reviewText, shownAnswer } from "./review-output.ts";
export { didYouMean, nearest } from "./suggest.ts";
export { MARK, visibleLine, visibleName, visiblePath, visibleText, withoutMark } from "./visible-text.ts";
export { isShownOtherwise, logEntryCount } from "./log-entries.ts";
export type { RunFinished, RunResult, RunRetried } from "./run-result.ts";
export { EVENT_VERSIONS, upcast } from "./upcast.ts";
