/**
 * The sinks of notifications about tasks: `[notify.NAME]` of the configuration, and the variables of OpenLoom. What is secret
 * comes from the environment; a variable that is named and not set is an error, because unsigned is not what was asked for.
 */
import { HeddleError, reasonOf } from "@heddle/protocol";
import {
  desktopSink,
  fileSink,
  FOR_PEOPLE,
  NOTIFICATION_NAMES,
  readNames,
  splitNames,
  webhookSink,
} from "@heddle/tasks";
import type { NotificationName, Sink, WebhookKind } from "@heddle/tasks";
import type { ConfigFile, NotifyTable } from "../config/schema.ts";

type Env = NodeJS.ProcessEnv;

export interface Notifying {
  readonly sinks: readonly Sink[];
  /** How much of what the agent said last goes with a notification. */
  readonly recentMessages: number | undefined;
}

const TELEGRAM = "https://api.telegram.org";
const MAX_RECENT_MESSAGES = 50;

export function notifyingOf({ notify = {} }: ConfigFile, env: Env): Notifying {
  const configured = Object.entries(notify)
    .filter(([, { enabled }]) => enabled !== false)
    .map(([name, table]) => sinkOf(name, table, env));
  const recent = wholeNumber(env, "OPENLOOM_NOTIFY_RECENT_MESSAGES");
  return {
    sinks: [...configured, ...openLoomSinks(env)],
    recentMessages: recent === undefined ? undefined : Math.min(recent, MAX_RECENT_MESSAGES),
  };
}

function sinkOf(name: string, table: NotifyTable, env: Env): Sink {
  const kind = table.type ?? "webhook";
  const events = table.events === undefined ? defaultEvents(kind) : eventsOf(name, table.events);
  if (kind === "desktop") return desktopSink({ name, events, env });
  if (kind === "file") {
    if (table.folder === undefined) throw invalid(name, 'needs folder = "/where/files/go"');
    const { folder, prefix, keep } = table;
    return fileSink({
      name,
      folder,
      events,
      ...(prefix === undefined ? {} : { prefix }),
      ...(keep === undefined ? {} : { keep }),
    });
  }
  return webhook(name, kind, table, { events, env });
}

/** People get what they wait for or must answer; programs get everything and choose. */
function defaultEvents(kind: NonNullable<NotifyTable["type"]>): ReadonlySet<NotificationName> {
  return new Set(kind === "webhook" || kind === "file" ? NOTIFICATION_NAMES : FOR_PEOPLE);
}

function webhook(
  name: string,
  kind: WebhookKind,
  table: NotifyTable,
  { events, env }: { readonly events: ReadonlySet<NotificationName>; readonly env: Env },
): Sink {
  const secret = table.secret_env === undefined ? undefined : variableOf(name, "secret_env", table.secret_env, env);
  const fromEnv = Object.entries(table.env_http_headers ?? {}).map(([header, variable]) => [
    header,
    variableOf(name, `env_http_headers.${header}`, variable, env),
  ]);
  if (kind === "telegram" && table.chat_id === undefined) throw invalid(name, 'needs chat_id = "…"');
  return webhookSink({
    name,
    kind,
    events,
    url: urlOf(name, kind, table, env),
    headers: table.http_headers ?? {},
    secretHeaders: Object.fromEntries(fromEnv),
    isSecretUrl: table.url_env !== undefined,
    ...(secret === undefined ? {} : { secret }),
    ...(table.chat_id === undefined ? {} : { chatId: table.chat_id }),
    ...(table.timeout_ms === undefined ? {} : { timeoutMs: table.timeout_ms }),
    ...(table.max_tries === undefined ? {} : { maxTries: table.max_tries }),
    allowsPrivate: table.allow_private ?? false,
  });
}

function urlOf(name: string, kind: WebhookKind, table: NotifyTable, env: Env): URL {
  if (table.url !== undefined && table.url_env !== undefined) throw invalid(name, "has url and url_env; keep one");
  const given =
    table.url ?? (table.url_env === undefined ? undefined : variableOf(name, "url_env", table.url_env, env));
  if (kind === "telegram") {
    if (table.token_env === undefined)
      throw invalid(name, 'needs token_env = "VARIABLE", which holds the bot\'s token');
    const token = variableOf(name, "token_env", table.token_env, env);
    return new URL(`/bot${token}/sendMessage`, given ?? TELEGRAM);
  }
  if (given === undefined) throw invalid(name, 'needs url = "https://…", or url_env = "VARIABLE" that holds it');
  const url = URL.parse(given);
  // Never the value itself: it may be a key.
  if (url === null || !/^https?:$/.test(url.protocol)) throw invalid(name, "has an address that is not http or https");
  return url;
}

function eventsOf(name: string, given: string | readonly string[]): ReadonlySet<NotificationName> {
  try {
    return readNames(given);
  } catch (error) {
    throw invalid(name, reasonOf(error));
  }
}

function variableOf(name: string, key: string, variable: string, env: Env): string {
  const value = env[variable];
  if (value !== undefined && value !== "") return value;
  throw invalid(name, `takes ${key} from ${variable}, which is not set`);
}

function invalid(name: string, what: string): HeddleError {
  return new HeddleError("config.invalid", `[notify.${name}] ${what}`);
}

/** OPENLOOM_NOTIFY_*: the same receivers go on without a change. */
function openLoomSinks(env: Env): readonly Sink[] {
  const secret = env["OPENLOOM_NOTIFY_WEBHOOK_SECRET"] ?? "";
  const retries = wholeNumber(env, "OPENLOOM_NOTIFY_WEBHOOK_MAX_RETRIES");
  const webhookEvents = eventsOf("OPENLOOM_NOTIFY_WEBHOOK_EVENTS", env["OPENLOOM_NOTIFY_WEBHOOK_EVENTS"] || "*");
  const hooks = splitNames(env["OPENLOOM_NOTIFY_WEBHOOK_URLS"] ?? "").map((url, index) =>
    webhookSink({
      name: `openloom-webhook-${index + 1}`,
      kind: "webhook",
      url: urlOf("OPENLOOM_NOTIFY_WEBHOOK_URLS", "webhook", { url }, env),
      events: webhookEvents,
      ...(secret === "" ? {} : { secret, signsLikeOpenLoom: true }),
      ...(retries === undefined ? {} : { maxTries: retries + 1 }),
    }),
  );
  const prefix = env["OPENLOOM_NOTIFY_FILE_PREFIX"] || "openloom";
  const fileEvents = eventsOf("OPENLOOM_NOTIFY_FILE_EVENTS", env["OPENLOOM_NOTIFY_FILE_EVENTS"] || "*");
  const files = splitNames(env["OPENLOOM_NOTIFY_FILE_DIRS"] ?? "").map((folder, index) =>
    fileSink({ name: `openloom-file-${index + 1}`, folder, events: fileEvents, prefix }),
  );
  return [...hooks, ...files];
}

function wholeNumber(env: Env, name: string): number | undefined {
  const text = env[name] ?? "";
  if (text === "") return undefined;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new HeddleError("config.invalid", `${name} must be a whole number, not ${JSON.stringify(text)}`);
}
