/**
 * What went wrong with one attempt, and whether another may help. Every text of a provider is cleaned here: keys and control
 * characters are removed and the length is limited, so that errors and events can carry it.
 */
import { defined, HeddleError, type ErrorCode } from "@heddle/protocol";
import type { Provider } from "../providers/providers.ts";
import { list, record, text, type Json } from "../wire/untrusted.ts";

/** Enough for an explanation, too little for a page of HTML. */
const MAX_MESSAGE_CHARS = 2048;
const MAX_QUOTE_BYTES = 200;

export interface ProviderErrorOptions {
  readonly isRetryable: boolean;
  readonly retryAfterMs?: number | undefined;
  /** The request went out on a kept connection that the other side had already closed. */
  readonly wasStaleSocket?: boolean;
  /** No answer had begun: the same request can be sent again. */
  readonly isBeforeAnswer?: boolean;
  readonly details?: Readonly<Record<string, string | number | boolean>>;
  readonly cause?: unknown;
}

export class ProviderError extends HeddleError {
  readonly isRetryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly wasStaleSocket: boolean;
  readonly isBeforeAnswer: boolean;

  constructor(code: ErrorCode, message: string, options: ProviderErrorOptions) {
    super(code, message, defined({ details: options.details, cause: options.cause }));
    this.isRetryable = options.isRetryable;
    this.retryAfterMs = options.retryAfterMs;
    this.wasStaleSocket = options.wasStaleSocket ?? false;
    this.isBeforeAnswer = options.isBeforeAnswer ?? false;
  }
}

/** Bytes that cannot be read; quoted, and not tried again. */
export function malformed(provider: Provider, what: string, bytes: Buffer | string): ProviderError {
  const firstBytes = quote(provider, bytes);
  return new ProviderError("provider.malformed", `${provider.name} sent ${what}: ${JSON.stringify(firstBytes)}`, {
    isRetryable: false,
    details: { firstBytes },
  });
}

export function cut(provider: Provider, when: string, bytes: Buffer | string): ProviderError {
  const firstBytes = quote(provider, bytes);
  const began = firstBytes === "" ? "nothing came" : `it began with ${JSON.stringify(firstBytes)}`;
  return new ProviderError("provider.cut", `the answer of ${provider.name} ended ${when}; ${began}`, {
    isRetryable: true,
    details: { firstBytes },
  });
}

export function quote(provider: Provider, bytes: Buffer | string): string {
  const start = Buffer.from(
    typeof bytes === "string" ? bytes.slice(0, MAX_QUOTE_BYTES) : bytes.subarray(0, MAX_QUOTE_BYTES),
  );
  return clean(provider, start.subarray(0, MAX_QUOTE_BYTES).toString("utf8"));
}

/** An error body of a provider, or an error event inside a stream. */
export interface Report {
  readonly status?: number;
  /** Type, code and status of the error object, joined. */
  readonly kind: string;
  readonly message: string;
  /** The field of the request that the provider names. */
  readonly param?: string | undefined;
  /** Names of the quotas that are used up, where the provider says which. */
  readonly quotas?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly requestId?: string | undefined;
  /** The report is the answer, not a part of one. */
  readonly isRefusal?: boolean;
}

export function failureOfReport(provider: Provider, report: Report): ProviderError {
  const verdict = classify(report);
  const { code, isRetryable } = verdict;
  const message = clean(provider, report.message);
  const status = report.status === undefined ? "" : ` (status ${report.status})`;
  const reason = message === "" ? "no reason given" : message;
  const refused = code === "provider.rejected" ? refusedPart(report) : undefined;
  const next = nextStep(provider, verdict);
  return new ProviderError(code, `${opening(provider, verdict)}${status}: ${reason}${next}`, {
    isRetryable,
    retryAfterMs: report.retryAfterMs,
    // A rate limit is not cleared by sending the request again at once.
    isBeforeAnswer: report.isRefusal === true && (report.status ?? 0) >= 500,
    details: defined({
      status: report.status,
      requestId: report.requestId === undefined ? undefined : clean(provider, report.requestId),
      refused,
    }),
  });
}

/** Reads the error object of any of the wires; undefined when the value holds none. */
export function readReport(value: Json): Omit<Report, "status"> | undefined {
  const outer = record(Array.isArray(value) ? value[0] : value);
  if (outer === undefined) return undefined;
  const inner = record(outer["error"]);
  const error = inner ?? outer;
  const message = text(error["message"]) ?? text(outer["error"]) ?? text(outer["message"]) ?? detail(outer["detail"]);
  if (message === undefined && inner === undefined) return undefined;
  const kind = [error["type"], error["code"], error["status"]].map((word) => text(word) ?? "").join(" ");
  return {
    kind,
    message: message ?? JSON.stringify(error),
    param: text(error["param"]),
    quotas: quotasIn(error["details"]),
    retryAfterMs: retryDelay(error["details"]),
  };
}

/** The error that a document or an event reports, if it does. A number as its code counts as status. */
export function failureIn(provider: Provider, value: Json): ProviderError | undefined {
  const report = readReport(value);
  if (report === undefined) return undefined;
  const code = record(record(Array.isArray(value) ? value[0] : value)?.["error"])?.["code"];
  const hasStatus = typeof code === "number" && code >= 400 && code < 600;
  return failureOfReport(provider, hasStatus ? { ...report, status: code } : report);
}

function opening(provider: Provider, { code, isSpent }: Verdict): string {
  const source = provider.keySource === undefined ? "" : ` in ${provider.keySource}`;
  if (code === "provider.context-exceeded") return "the request is too long for the model";
  if (code === "auth.rejected") return `${provider.name} refused the key${source}`;
  if (isSpent === true) return `${provider.name} says that the quota is used up`;
  return `${provider.name} ${OPENINGS[code] ?? "refused the request"}`;
}

const OPENINGS: Readonly<Partial<Record<ErrorCode, string>>> = {
  "model.unknown": "does not know the model",
  "provider.rate-limited": "is rate-limiting requests",
  "provider.overloaded": "cannot answer now",
  "provider.malformed": "could not read the tool call that the model made",
};

/** What the user can do, where another try does not help. */
function nextStep({ id, auth }: Provider, { code, isSpent }: Verdict): string {
  if (code === "model.unknown")
    return `; heddle models ${id} lists its models: choose one with -m MODEL, or with model in config.toml`;
  if (code === "provider.context-exceeded") return "; send less, or choose a model with a larger window with -m MODEL";
  if (isSpent === true)
    return `; add quota there, or ask another provider with -m PROVIDER:MODEL (heddle accounts lists those with a key)`;
  if (code !== "auth.rejected") return "";
  const isOfMachine = auth === "vertex" || auth === "bedrock" || auth === "command";
  return isOfMachine
    ? `; heddle accounts says where its credentials come from, model_providers.${id}.auth in config.toml changes that`
    : `; store another with: heddle login ${id} (heddle accounts says which one is used)`;
}

interface Verdict {
  readonly code: ErrorCode;
  readonly isRetryable: boolean;
  /** Money or a quota is used up: nothing but the user helps, or the next day. */
  readonly isSpent?: true;
}

const CONTEXT =
  /context_length_exceeded|context_window|(context|prompt).{0,40}(too long|exceed)|maximum context|exceeds? the (maximum|context)|too many (input )?tokens|input token count/i;
const NO_MODEL =
  /model_not_found|not_found_error model:|(model|deployment).{0,80}(not found|does not exist|not exist|unknown|not supported)|(unknown|no such|invalid|not a valid|not found the) model|supported (API )?model names/i;
const KEY = /authentication|invalid_api_key|unauthenticated|api key not valid|incorrect api key/i;
const QUOTA = /insufficient_quota|usage_limit|billing|credit balance/i;
/** Used up, whatever pause the provider names. */
const SPENT = /insufficient_quota|usage_limit|credit balance/i;
const DAILY = /per.?day|daily/i;
/** The provider could not read the call that the model wrote; another try mostly succeeds. */
const BROKEN_CALL = /tool_use_failed/i;

function classify(report: Report): Verdict {
  const { status, kind, message } = report;
  const all = `${kind.trim()} ${message}`;
  const isClientError = status === undefined || (status >= 400 && status < 500 && status !== 429);
  if (status === 413 || (isClientError && CONTEXT.test(all))) return final("provider.context-exceeded");
  if (isClientError && status !== 401 && status !== 403 && NO_MODEL.test(all)) return final("model.unknown");
  if (status === 401 || status === 403 || (isClientError && KEY.test(all))) return final("auth.rejected");
  if ((status === undefined || status === 429) && isUsedUp(report, all))
    return { ...final("provider.rate-limited"), isSpent: true };
  if (status === 402) return { ...final("provider.rejected"), isSpent: true };
  if (status === 429 || /rate_limit|resource_exhausted/i.test(kind)) return again("provider.rate-limited");
  if (status === 408 || /timeout|deadline_exceeded/i.test(kind)) return again("provider.stalled");
  // Some providers send 409 when a lock was busy.
  if (status === 409 || (status !== undefined && status >= 500 && status !== 501)) return again("provider.overloaded");
  if (/overloaded|unavailable|server_error|api_error|internal/i.test(kind)) return again("provider.overloaded");
  if (BROKEN_CALL.test(kind)) return again("provider.malformed");
  if (/content_filter|content_policy|policy_violation/i.test(kind)) return final("provider.refused");
  return final("provider.rejected");
}

/** Gemini names billing for a quota per minute too, with the pause after which it answers again. */
function isUsedUp({ status, quotas = "", retryAfterMs }: Report, all: string): boolean {
  if (SPENT.test(all) || DAILY.test(quotas)) return true;
  if (status === 429 && quotas === "" && DAILY.test(all)) return true;
  return retryAfterMs === undefined && QUOTA.test(all);
}

const final = (code: ErrorCode): Verdict => ({ code, isRetryable: false });
const again = (code: ErrorCode): Verdict => ({ code, isRetryable: true });

/**
 * The kind of part in the conversation that a provider refused. Such a refusal is repeated with every later request of the
 * thread, unless the part is left out.
 */
type RefusedPart =
  /** What only the provider can read: reasoning and its signatures. */
  | "sealed"
  | "images"
  /** Something of the conversation, of an unknown kind. */
  | "conversation";

const STATUSES: ReadonlySet<number> = new Set([400, 404, 422]);
const SEALED =
  /(thinking|reasoning)`? (block|item)|of type 'reasoning'|required following item|required 'reasoning' item|signature|encrypted.content/i;
const IMAGES = /\bimages?\b|image_url|input_image|inline_?data|vision/i;
/** A position in the conversation as each of the wires writes it: messages.3.content.0, input[2], contents[1].parts. */
const POSITION =
  /(^|[^\w$])((messages|contents|input)[.[]\s*\d|(messages|contents):|contents\.parts)|message (at )?index \d|messages? with role|assistant message/i;

function refusedPart({ status, message, param = "" }: Report): RefusedPart | undefined {
  if (status === undefined || !STATUSES.has(status)) return undefined;
  if (/^tools?\b/.test(param) || /(^|[^\w])tools[.[]\d/.test(message)) return undefined;
  if (SEALED.test(message)) return "sealed";
  if (IMAGES.test(message)) return "images";
  const isPosition = status !== 404 && (POSITION.test(message) || /^(messages|contents|input)\b/.test(param));
  return isPosition ? "conversation" : undefined;
}

/** FastAPI-like servers put their reason under `detail`. */
function detail(value: Json): string | undefined {
  if (value === undefined || value === null) return undefined;
  return text(value) ?? JSON.stringify(value);
}

/** Gemini names the pause inside the body: { "@type": "…RetryInfo", "retryDelay": "34s" }. */
function retryDelay(details: Json): number | undefined {
  for (const entry of list(details)) {
    const seconds = /^(\d+(?:\.\d+)?)s$/.exec(text(record(entry)?.["retryDelay"]) ?? "")?.[1];
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1000);
  }
  return undefined;
}

/** Gemini names what is used up: { "@type": "…QuotaFailure", "violations": [{ "quotaId": "…PerMinute…" }] }. */
function quotasIn(details: Json): string | undefined {
  const names = list(details).flatMap((entry) =>
    list(record(entry)?.["violations"]).map((violation) => text(record(violation)?.["quotaId"]) ?? ""),
  );
  return names.length === 0 ? undefined : names.join(" ");
}

export function clean(provider: Provider, text: string): string {
  // Secrets are removed before the text is cut: one may end beyond the cut.
  const safe = provider
    .redact(text.slice(0, MAX_MESSAGE_CHARS * 4))
    .replace(CONTROL, " ")
    .trim();
  return safe.length <= MAX_MESSAGE_CHARS ? safe : `${safe.slice(0, MAX_MESSAGE_CHARS)}… (cut)`;
}

// oxlint-disable-next-line no-control-regex -- these are what must not reach a terminal
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
