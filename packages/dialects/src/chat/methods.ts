/** Every method of the chat dialect with what it takes and answers, and the older names of the same. */
import type { z } from "zod";
import * as params from "./params.ts";
import * as results from "./results.ts";

interface ChatMethodShape {
  readonly params: z.ZodType;
  readonly result: z.ZodType;
}

export const CHAT_METHODS = {
  hello: { params: params.HelloParams, result: results.HelloResult },
  "chat.create": { params: params.CreateParams, result: results.ChatResult },
  "chat.resume": { params: params.ResumeParams, result: results.ResumeResult },
  "chat.message.send": { params: params.SendParams, result: results.SendResult },
  "chat.cancel": { params: params.CancelParams, result: results.CancelResult },
  "chat.approval.respond": { params: params.ApprovalParams, result: results.ApprovalResult },
  "chat.list": { params: params.ListParams, result: results.ListResult },
  "chat.thread.summarize": { params: params.ChatParams, result: results.ThreadSummarizeResult },
  "chat.thread.read": { params: params.ThreadReadParams, result: results.ThreadReadResult },
  "chat.thread.list": { params: params.ListParams, result: results.ThreadListResult },
  "chat.thread.archive": { params: params.ChatParams, result: results.OkResult },
  "chat.thread.unarchive": { params: params.ChatParams, result: results.OkResult },
  "chat.thread.delete": { params: params.ChatParams, result: results.OkResult },
  "chat.thread.fork": { params: params.ForkParams, result: results.ChatResult },
  "chat.thread.rename": { params: params.RenameParams, result: results.RenameResult },
  "chat.settings.update": { params: params.SettingsUpdateParams, result: results.SettingsResult },
  "chat.files.search": { params: params.FilesSearchParams, result: results.FilesResult },
  "chat.skills.list": { params: params.SkillsParams, result: results.SkillsResult },
  "chat.skills.config.write": { params: params.SkillsConfigParams, result: results.SkillsConfigResult },
  "chat.model.list": { params: params.ModelListParams, result: results.ModelsResult },
  "chat.tools.list": { params: params.ToolsListParams, result: results.ToolsResult },
  "chat.collaboration.mode.list": { params: params.NoParams, result: results.ModesResult },
  "chat.account.read": { params: params.AccountReadParams, result: results.AccountReadResult },
  "chat.account.list": { params: params.NoParams, result: results.AccountListResult },
  "chat.account.refresh": { params: params.AccountParams, result: results.AccountRefreshResult },
  "chat.account.login.start": { params: params.LoginStartParams, result: results.LoginStartResult },
  "chat.account.login.poll": { params: params.LoginPollParams, result: results.LoginPollResult },
  "chat.account.login.cancel": { params: params.LoginPollParams, result: results.LoginPollResult },
  "chat.account.logout": { params: params.AccountParams, result: results.OkResult },
  "chat.events.list": { params: params.EventsListParams, result: results.EventsListResult },
  "events.subscribe": { params: params.SubscribeParams, result: results.SubscribeResult },
  "events.unsubscribe": { params: params.UnsubscribeParams, result: results.OkResult },
} as const satisfies Readonly<Record<string, ChatMethodShape>>;

export type ChatMethod = keyof typeof CHAT_METHODS;
export type ChatParams<Method extends ChatMethod> = z.infer<(typeof CHAT_METHODS)[Method]["params"]>;
export type ChatResultOf<Method extends ChatMethod> = z.infer<(typeof CHAT_METHODS)[Method]["result"]>;

const SAME: Readonly<Record<string, ChatMethod>> = {
  "chat.event.subscribe": "events.subscribe",
  "chat.events.subscribe": "events.subscribe",
  "chat.event.unsubscribe": "events.unsubscribe",
  "chat.events.unsubscribe": "events.unsubscribe",
};
/** What older clients put before the names. */
const OLDER = /^agent\.(?:chat|codex)\./;

/** undefined: there is no such method. */
export function chatMethod(name: string): ChatMethod | undefined {
  const today = name.replace(OLDER, "chat.");
  const same = Object.hasOwn(SAME, today) ? SAME[today] : undefined;
  if (same !== undefined) return same;
  return isMethod(today) ? today : undefined;
}

function isMethod(name: string): name is ChatMethod {
  return Object.hasOwn(CHAT_METHODS, name);
}

/** True for what begins a conversation in this dialect. */
export function isChatName(name: string): boolean {
  return name === "hello" || /^(?:chat|agent|events)\./.test(name);
}

/** Whether a subscription to `pattern` receives `topic`. */
export function matchesTopic(pattern: string, topic: string): boolean {
  if (pattern === "*") return true;
  if (!pattern.endsWith(".*")) return pattern === topic;
  return topic.startsWith(pattern.slice(0, -1));
}

/** The topic as this subscription knows it: older clients listen under `agent.chat.`. */
export function topicFor(pattern: string, topic: string): string {
  const [older = ""] = OLDER.exec(pattern.endsWith("*") ? `${pattern.slice(0, -1)}` : pattern) ?? [];
  return older === "" ? topic : `${older}${topic.replace(/^chat\./, "")}`;
}
