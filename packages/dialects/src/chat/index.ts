/**
 * The dialect of `chat.*`: methods, events and items as chat clients know them, as a pure mapping from and to Heddle's own
 * events, items, settings and questions.
 */
export { CHAT_RPC, chatRpcCode } from "./codes.ts";
export { CHAT_EVENTS, CHAT_NOTICES, type ChatEvent, type ChatTopic } from "./events.ts";
export { CHAT_PROTOCOL, negotiate } from "./hello.ts";
export { ChatItem } from "./items.ts";
export { chatSchema } from "./json-schema.ts";
export { chatDecision, ChatLog, decisionOf, deletedUnread, tokensOf } from "./log.ts";
export {
  CHAT_METHODS,
  chatMethod,
  matchesTopic,
  isChatName,
  topicFor,
  type ChatMethod,
  type ChatParams,
  type ChatResultOf,
} from "./methods.ts";
export { invalidParam, readParams } from "./params.ts";
export type { ChatRecord, ProviderStatus } from "./results.ts";
export { ChatSettings, ChatSettingsChange, chatPatch, COLLABORATION_MODES } from "./settings.ts";
export { chatTurns, iso, placeholderTitle, type ChatTurn, type ThreadView } from "./view.ts";
