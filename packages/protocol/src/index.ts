export { defined } from "./defined.ts";
export { imageTypeOf } from "./threads/image-type.ts";
export { never } from "./never.ts";
export { callerName } from "./caller-name.ts";
export { canonical } from "./events/canonical.ts";
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
  diskFaultOf,
} from "./errors.ts";
export { counted } from "./text/counted.ts";
export { jsonProblem } from "./text/json-problem.ts";
export { PLAIN } from "./text/plain-issues.ts";
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
  NOTE_STREAM,
  uuidv7,
} from "./events/ids.ts";
export {
  ApprovalPolicy,
  Effect,
  Envelope,
  EnvelopeLimits,
  HopChannel,
  HopEdge,
  Gate,
  GateName,
  HopGuard,
  PlainGuard,
  HostRule,
  Network,
  SandboxHolds,
  SandboxLevel,
  SandboxMode,
} from "./envelopes/envelope.ts";
export type { GuardFinding, HopFacts } from "./events/envelope-events.ts";
export { networkWithin } from "./envelopes/hosts.ts";
export { EvidenceClaim, EvidenceQuery, EvidenceRef, EvidenceTag } from "./evidence/evidence-query.ts";
export { EvidenceEntry, type EvidenceChain, type EvidencePage } from "./evidence/evidence-entry.ts";
export { EvidenceNote, MAX_NOTE_CHARS } from "./events/evidence-events.ts";
export {
  Agent,
  AgentName,
  InputRole,
  InputSource,
  MAX_ASK_MS,
  MAX_MESSAGE_CHARS,
  Message,
  MessageKind,
  MessageOutcome,
  NamedInput,
  NamedInputs,
  OutgoingMessage,
  type Readiness,
} from "./threads/messages.ts";
export { isSandboxMode } from "./envelopes/sandbox-modes.ts";
export { BUILT_IN_ENVELOPE_IDS, ENVELOPE_EXAMPLES, type BuiltInEnvelopeId } from "./envelopes/built-in-envelopes.ts";
export {
  ApprovalQuestion,
  Decision,
  HopRequest,
  Permissions,
  UserAnswers,
  UserQuestion,
  type ApprovalAnswer,
  type StoredAnswer,
} from "./threads/approvals.ts";
export {
  MessagePhase,
  ModelOutputPart,
  Usage,
  type ModelToolCall,
  type Opaque,
  type Source,
  type WebSearch,
} from "./threads/model-output.ts";
export { addUsage, lessUsage, NO_USAGE, usageInSnakeCase } from "./threads/usage.ts";
export {
  ChildState,
  ChildStatus,
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
} from "./threads/items.ts";
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
} from "./events/events.ts";
export { WorkerRole } from "./events/worker-events.ts";
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
} from "./events/authors.ts";
export { Failure, Holder } from "./events/event-parts.ts";
export type { AgentEnd, HandleOrigin, NativeEnd, Takeover } from "./events/agent-events.ts";
export { nextGoal, worked, type StandingGoal } from "./threads/standing-goal.ts";
export { FIRST_EPOCH, holderNamed, leaseLost, ownerOf, type Lease } from "./threads/leases.ts";
export {
  ConversationEntry,
  GitInfoChange,
  Goal,
  GoalStatus,
  ThreadParent,
  type ClientTool,
} from "./threads/thread-facts.ts";
export {
  isNotificationEvent,
  isOutsideThreads,
  isTaskEvent,
  isWorkerEvent,
  type NotificationEventBody,
  type TaskEventBody,
  type WorkerEventBody,
} from "./tasks/task-event-kinds.ts";
export { afterEvents, checkRunOf, isNudge, nextTask } from "./tasks/task-machine.ts";
export {
  budgetOf,
  hasEnded,
  hasOwnTree,
  isObstructed,
  TASK_STATES,
  type TaskRecord,
  type TaskSpent,
  type TaskState,
} from "./tasks/task-record.ts";
export type { CheckResult, CheckViolation, LeafCheck, LeafCheckOf, TaskBaseline } from "./tasks/task-checks.ts";
export type { Culprit, PromptReason, WaitCause } from "./events/task-events.ts";
export { CODEX_VERSION } from "./codex-version.ts";
export { MCP_STARTUP_TIMEOUT_MS, MCP_TOOL_TIMEOUT_MS } from "./mcp/mcp-limits.ts";
export {
  McpApproval,
  McpHttpServer,
  McpServerConfig,
  McpStdioServer,
  type McpServerInput,
  type McpState,
} from "./mcp/mcp.ts";
export type { ClientAct } from "./events/client-events.ts";
export type {
  BegunMcpLogin,
  McpAuthority,
  McpAuthStatus,
  McpCode,
  McpIssuers,
  McpLoginRequest,
  McpTokens,
  McpTokenSource,
} from "./mcp/mcp-login.ts";
export { HookConfig, HookEvent, HookOutput } from "./threads/hooks.ts";
export { reviewText, shownAnswer } from "./threads/review-output.ts";
export { didYouMean, nearest } from "./text/suggest.ts";
export { MARK, visibleLine, visibleName, visiblePath, visibleText, withoutMark } from "./text/visible-text.ts";
export { isShownOtherwise, logEntryCount } from "./events/log-entries.ts";
export type { RunFinished, RunResult, RunRetried } from "./run-result.ts";
export { EVENT_VERSIONS, upcast } from "./events/upcast.ts";
