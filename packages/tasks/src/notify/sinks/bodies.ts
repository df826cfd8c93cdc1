/** How a notification looks to people, and in Slack, Discord, ntfy and Telegram. Pure. */
import { visibleText } from "@heddle/protocol";
import type { Outgoing } from "../sink.ts";

export interface Body {
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ShownMessage {
  readonly title: string;
  readonly lines: readonly string[];
}

const SIGNS: Readonly<Record<string, string>> = {
  TASK_COMPLETED: "done",
  TASK_VERIFIED: "verified",
  TASK_CLAIMED: "claims to be done",
  TASK_FAILED: "failed",
  VERIFY_FAILED: "checks failed",
  TASK_STALLED: "is stuck",
  SESSION_STALE_BUSY: "is stuck",
  PERMISSION_WAITING: "waits for an answer",
  BUDGET_WARNING: "is near its budget",
  BUDGET_PAUSED: "has used up its budget",
  TASK_CREATED: "is queued",
  TASK_STARTED: "has started",
  TASK_UPDATED: "continues",
  LOG_LINE: "says",
  NOTIFY_TEST: "a test",
};

const MAX_TITLE_CHARS = 200;
const MAX_SUMMARY_CHARS = 1_000;
/** Discord's limit; Telegram allows twice as much. */
const MAX_TEXT_CHARS = 1_900;

export function shownMessage({ event, payload }: Outgoing): ShownMessage {
  const data = tableOf(payload["data"]);
  const name = textOf(payload["task_name"]) || textOf(payload["task_id"]);
  // A claim is not proof, and the title must say so.
  const isUnproven = event === "TASK_COMPLETED" && data["verified"] === false;
  const sign = isUnproven ? "says it is done (not checked)" : (SIGNS[event] ?? event);
  const summary = textOf(data["error"]) || textOf(data["summary"]) || budgetText(data);
  const byHand = textOf(tableOf(data["takeover"])["command"]);
  return {
    title: cut(visibleText(oneLine(`${name}: ${sign}`)), MAX_TITLE_CHARS),
    lines: [
      ...textLines(cut(summary, MAX_SUMMARY_CHARS)),
      textOf(data["url"]) || textOf(payload["task_id"]),
      byHand === "" ? "" : `take over: ${byHand}`,
    ].filter((line) => line !== ""),
  };
}

/** Several lines of an agent are indented, so that none of them looks like the title of another message. */
function textLines(summary: string): readonly string[] {
  const lines = visibleText(summary).split("\n");
  return lines.length === 1 ? lines : lines.map((line) => `| ${line}`);
}

export function jsonBody({ payload }: Outgoing): Body {
  return asJson(payload);
}

/** For Slack, and for desktops that read the body as markup. */
export function escapeMarkup(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

export function slackBody(notification: Outgoing): Body {
  const { title, lines } = shownMessage(notification);
  return asJson({ text: [`*${escapeMarkup(title)}*`, ...lines.map(escapeMarkup)].join("\n") });
}

/** `allowed_mentions`: no text of an agent mentions anybody. */
export function discordBody(notification: Outgoing): Body {
  const { title, lines } = shownMessage(notification);
  const content = cut([`**${title}**`, ...lines].join("\n"), MAX_TEXT_CHARS);
  return asJson({ content, allowed_mentions: { parse: [] } });
}

export function ntfyBody(notification: Outgoing): Body {
  const { title, lines } = shownMessage(notification);
  const isUrgent = /FAILED|STALLED|STALE|WAITING|PAUSED/.test(notification.event);
  return {
    text: lines.join("\n") || title,
    headers: {
      "content-type": "text/plain; charset=utf-8",
      title: headerText(title),
      priority: isUrgent ? "high" : "default",
      tags: isUrgent ? "warning" : "white_check_mark",
    },
  };
}

/** Plain text: nothing an agent writes is markup. */
export function telegramBody(notification: Outgoing, chatId: string): Body {
  const { title, lines } = shownMessage(notification);
  const text = cut([title, ...lines].join("\n"), MAX_TEXT_CHARS);
  return asJson({ chat_id: chatId, text, disable_web_page_preview: true });
}

function asJson(value: object): Body {
  return { text: JSON.stringify(value), headers: { "content-type": "application/json" } };
}

/** Headers are ASCII; anything else is encoded as in mail, which ntfy reads. */
function headerText(text: string): string {
  return /^[\u0020-\u007e]*$/.test(text) ? text : `=?UTF-8?B?${Buffer.from(text).toString("base64")}?=`;
}

function budgetText(data: Readonly<Record<string, unknown>>): string {
  const { what, spent, limit } = data;
  return typeof what === "string" ? `${what}: ${String(spent)} of ${String(limit)}` : "";
}

function tableOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}
