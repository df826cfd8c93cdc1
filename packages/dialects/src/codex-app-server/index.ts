/**
 * The dialect of `codex app-server` 0.166: what its clients send and expect, as a pure mapping from and to Heddle's own
 * events, items, settings and questions.
 */
export { answerFrom } from "./approvals.ts";
export { clientAnswerFrom, clientToolsFrom } from "./client-tools.ts";
export { invalidParams, unknownVariant } from "./errors.ts";
export { inputFrom, shownInput, type UserInput } from "./input.ts";
export { CODEX_METHODS, type CodexMethod } from "./methods.ts";
export { ThreadDialect, type ThreadState } from "./notifications.ts";
export {
  CODEX_PARAMS,
  EXPERIMENTAL_FIELDS,
  isSupported,
  isKeyWithoutEffect,
  fieldsWithoutEffect,
  type BeginParams,
  type CodexParams,
  type SupportedMethod,
} from "./params.ts";
export { mcpStartup, threadNews } from "./thread-news.ts";
export { PARAMS_OF_NO_CONCERN, PARAMS_WITHOUT_EFFECT, unusedParams } from "./unused-params.ts";
export { codexGoal, goalNotice } from "./goals.ts";
export { injectedEntries, type ReadItems } from "./injected.ts";
export { settingsUpdated } from "./thread-settings.ts";
export {
  approvalPolicyFrom,
  collaborationMode,
  sandboxFrom,
  PROFILES,
  sandboxOfProfile,
  sandboxPolicy,
  threadSettings,
  type SandboxChoice,
} from "./settings.ts";
export {
  type CodexNotification,
  type CodexServerRequest,
  type CodexThread,
  type CodexThreadItem,
  type CodexThreadStatus,
  type CodexTurn,
  type Outgoing,
  type RequestId,
} from "./shapes.ts";
export { appServerOrigin, codexThread, isInteractive, type ThreadFacts } from "./threads.ts";
export { codexTurn, itemsOf, newTurn, storedTurns, type StoredTurn } from "./turns.ts";
