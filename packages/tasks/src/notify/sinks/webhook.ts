/** Notifications as HTTP requests: the whole payload as JSON, or a body in the words of a chat program. */
import type { NotificationName } from "../names.ts";
import { hmac, sign, SIGNATURE_HEADER } from "../signature.ts";
import type { Outgoing, Sink } from "../sink.ts";
import { discordBody, jsonBody, ntfyBody, slackBody, telegramBody, type Body } from "./bodies.ts";
import { post } from "./post.ts";

export type WebhookKind = "webhook" | "slack" | "discord" | "ntfy" | "telegram";

export interface WebhookOptions {
  readonly name: string;
  readonly kind: WebhookKind;
  readonly url: URL;
  readonly events: ReadonlySet<NotificationName>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Values that nobody may see. */
  readonly secretHeaders?: Readonly<Record<string, string>>;
  /** What is behind the host is the key to it, as it always is at Slack, Discord and Telegram. */
  readonly isSecretUrl?: boolean;
  /** Bodies are signed with it. */
  readonly secret?: string;
  /** OpenLoom's signature too, for receivers that know no other. It has no time in it. */
  readonly signsLikeOpenLoom?: boolean;
  /** Of `telegram`. */
  readonly chatId?: string;
  readonly timeoutMs?: number;
  readonly maxTries?: number;
  /** Receivers in private networks are meant. */
  readonly allowsPrivate?: boolean;
  readonly now?: () => number;
}

const DEFAULT_TIMEOUT_MS = 10_000;

export function webhookSink(options: WebhookOptions): Sink {
  const { name, kind, url, events, secret, headers = {}, secretHeaders = {}, now = Date.now } = options;
  return {
    name,
    kind,
    target: `${url.protocol}//${url.host}${url.pathname.length > 1 || url.search !== "" ? "/…" : ""}`,
    events,
    secrets: secretsOf(options),
    ...(options.maxTries === undefined ? {} : { maxTries: options.maxTries }),
    send(notification, { signal }) {
      const body = bodyOf(options, notification);
      return post({
        url,
        body: body.text,
        headers: {
          ...body.headers,
          "user-agent": "heddle",
          "x-heddle-event": notification.event,
          "x-heddle-delivery": notification.id,
          "x-openloom-event": notification.event,
          ...(secret === undefined ? {} : signatures(options, secret, body.text, now())),
          ...headers,
          ...secretHeaders,
        },
        timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
        allowsPrivate: options.allowsPrivate ?? false,
        signal,
      });
    },
  };
}

const KEYED: ReadonlySet<WebhookKind> = new Set(["slack", "discord", "telegram"]);

/** Only what is meant to be secret: every text that is equal to one of these is hidden in all records. */
function secretsOf({ kind, url, secret, secretHeaders = {}, isSecretUrl }: WebhookOptions): readonly string[] {
  const behind = isSecretUrl === true || KEYED.has(kind) ? [url.pathname.slice(1), url.search.slice(1)] : [];
  const given = [secret ?? "", ...Object.values(secretHeaders), url.password, ...behind];
  return given.filter((value) => value !== "");
}

function bodyOf({ kind, chatId = "" }: WebhookOptions, notification: Outgoing): Body {
  switch (kind) {
    case "webhook":
      return jsonBody(notification);
    case "slack":
      return slackBody(notification);
    case "discord":
      return discordBody(notification);
    case "ntfy":
      return ntfyBody(notification);
    case "telegram":
      return telegramBody(notification, chatId);
  }
}

function signatures(
  { signsLikeOpenLoom }: WebhookOptions,
  secret: string,
  body: string,
  now: number,
): Readonly<Record<string, string>> {
  return {
    [SIGNATURE_HEADER]: sign(body, secret, now),
    ...(signsLikeOpenLoom === true ? { "x-openloom-signature-256": `sha256=${hmac(secret, body)}` } : {}),
  };
}
