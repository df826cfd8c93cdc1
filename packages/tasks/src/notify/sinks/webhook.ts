/** Notifications as HTTP requests: the payload as JSON, or the body of a chat program. */
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
  readonly secretHeaders?: Readonly<Record<string, string>>;
  /** The path is a secret, as it always is at Slack, Discord and Telegram. */
  readonly isSecretUrl?: boolean;
  readonly secret?: string;
  /** Adds OpenLoom's signature, which has no time, for receivers that know no other. */
  readonly signsLikeOpenLoom?: boolean;
  readonly chatId?: string;
  readonly timeoutMs?: number;
  readonly maxTries?: number;
  /** Receivers in private networks are allowed. */
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
      const body = BODIES[kind](notification, options.chatId ?? "");
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

/** Only real secrets: every text that equals one of these is removed from all records. */
function secretsOf({ kind, url, secret, secretHeaders = {}, isSecretUrl }: WebhookOptions): readonly string[] {
  const behind = isSecretUrl === true || KEYED.has(kind) ? [url.pathname.slice(1), url.search.slice(1)] : [];
  const given = [secret ?? "", ...Object.values(secretHeaders), url.password, ...behind];
  return given.filter((value) => value !== "");
}

const BODIES: Readonly<Record<WebhookKind, (notification: Outgoing, chatId: string) => Body>> = {
  webhook: jsonBody,
  slack: slackBody,
  discord: discordBody,
  ntfy: ntfyBody,
  telegram: telegramBody,
};

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
