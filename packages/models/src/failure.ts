/**
 * What went wrong with one attempt, and whether another may help. Every text that comes from a provider passes here:
 * keys are taken out, control characters dropped, the length capped, so that errors and events can carry it.
 */
import { HeddleError, type ErrorCode } from "@heddle/protocol";
import type { Provider } from "./providers.ts";
import { refusedPart } from "./refused-part.ts";
import { list, record, text, type Json } from "./wire/untrusted.ts";

/** A provider's own words, kept; enough for its explanation, too little for a page of HTML. */
const MAX_MESSAGE_CHARS = 2048;
const MAX_QUOTE_BYTES = 200;

export interface ProviderErrorOptions {
  readonly isRetryable: boolean;
  readonly retryAfterMs?: number | undefined;
  /** The request went out on a kept connection that the other side had already closed. */
  readonly wasStaleSocket?: boolean;
  /** No answer had begun: the same bytes can be sent once more. */
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
    super(code, message, {
      ...(options.details === undefined ? {} : { details: options.details }),
      ...(options.cause === undefined ? {} : { cause: options.cause }),
    });
    this.isRetryable = options.isRetryable;
    this.retryAfterMs = options.retryAfterMs;
    this.wasStaleSocket = options.wasStaleSocket ?? false;
    this.isBeforeAnswer = options.isBeforeAnswer ?? false;
  }
}

/** Bytes that make no sense: typed, with the first 200 of them, and not tried again. */
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

/** What a provider says went wrong: an error body, or an error event inside a stream. */
export interface Report {
  readonly status?: number;
  /** Type, code and status words of the error object, joined. */
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
  const { code, isRetryable } = classify(report);
  const message = clean(provider, report.message);
  const status = report.status === undefined ? "" : ` (status ${report.status})`;
  const said = message === "" ? "no reason given" : message;
  const refused = code === "provider.rejected" ? refusedPart(report) : undefined;
  const next = nextStep(provider, { code, isRetryable });
  return new ProviderError(code, `${opening(provider, code)}${status}: ${said}${next}`, {
    isRetryable,
    retryAfterMs: report.retryAfterMs,
    // A provider that limits the rate is not helped by the same request at once.
    isBeforeAnswer: report.isRefusal === true && (report.status ?? 0) >= 500,
    details: {
      ...(report.status === undefined ? {} : { status: report.status }),
      ...(report.requestId === undefined ? {} : { requestId: clean(provider, report.requestId) }),
      ...(refused === undefined ? {} : { refused }),
    },
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

/** The error that a document or an event reports, if it does. A number as its code takes the place of a status. */
export function failureIn(provider: Provider, value: Json): ProviderError | undefined {
  const report = readReport(value);
  if (report === undefined) return undefined;
  const code = record(record(Array.isArray(value) ? value[0] : value)?.["error"])?.["code"];
  const hasStatus = typeof code === "number" && code >= 400 && code < 600;
  return failureOfReport(provider, { ...report, ...(hasStatus ? { status: code } : {}) });
}

function opening(provider: Provider, code: ErrorCode): string {
  switch (code) {
    case "auth.rejected":
      return `${provider.name} refused the key${provider.keySource === undefined ? "" : ` in ${provider.keySource}`}`;
    case "model.unknown":
      return `${provider.name} does not know the model`;
    case "provider.context-exceeded":
      return `the request is too long for the model`;
    case "provider.rate-limited":
      return `${provider.name} is rate-limiting requests`;
    case "provider.overloaded":
      return `${provider.name} cannot answer now`;
    case "provider.malformed":
      return `${provider.name} could not read the tool call that the model made`;
    default:
      return `${provider.name} refused the request`;
  }
}

/** The command that helps, where another try does not. */
function nextStep({ id, auth }: Provider, { code, isRetryable }: Verdict): string {
  if (code === "model.unknown")
    return `; heddle models ${id} lists its models: choose one with -m MODEL, or with model in config.toml`;
  if (code === "provider.rate-limited" && !isRetryable)
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
}

const CONTEXT =
  /context_length_exceeded|context_window|(context|prompt).{0,40}(too long|exceed)|maximum context|exceeds? the (maximum|context)|too many (input )?tokens|input token count/i;
const NO_MODEL =
  /model_not_found|not_found_error model:|(model|deployment).{0,80}(not found|does not exist|not exist|unknown|not supported)|(unknown|no such|invalid|not a valid|not found the) model|supported (API )?model names/i;
const KEY = /authentication|invalid_api_key|unauthenticated|api key not valid|incorrect api key/i;
const QUOTA = /insufficient_quota|usage_limit|billing|credit balance/i;
/** Used up for good, whatever pause the provider names. */
const SPENT = /insufficient_quota|usage_limit|credit balance/i;
const DAILY = /per.?day|daily/i;
/** The provider could not read the call that the model wrote; with another try it mostly succeeds. */
const BROKEN_CALL = /tool_use_failed/i;

function classify({ status, kind, message, quotas = "", retryAfterMs }: Report): Verdict {
  const all = `${kind.trim()} ${message}`;
  const isClientError = status === undefined || (status >= 400 && status < 500 && status !== 429);
  if (status === 413 || (isClientError && CONTEXT.test(all))) return final("provider.context-exceeded");
  if (isClientError && status !== 401 && status !== 403 && NO_MODEL.test(all)) return final("model.unknown");
  if (status === 401 || status === 403 || (isClientError && KEY.test(all))) return final("auth.rejected");
  if ((status === undefined || status === 429) && isUsedUp({ status, words: all, quotas, retryAfterMs })) {
    return final("provider.rate-limited");
  }
  if (status === 429 || /rate_limit|resource_exhausted/i.test(kind)) return again("provider.rate-limited");
  if (status === 408 || /timeout|deadline_exceeded/i.test(kind)) return again("provider.stalled");
  // 409 is how some providers say that a lock was busy.
  if (status === 409 || (status !== undefined && status >= 500 && status !== 501)) return again("provider.overloaded");
  if (/overloaded|unavailable|server_error|api_error|internal/i.test(kind)) return again("provider.overloaded");
  if (BROKEN_CALL.test(kind)) return again("provider.malformed");
  if (/content_filter|content_policy|policy_violation/i.test(kind)) return final("provider.refused");
  return final("provider.rejected");
}

/** Gemini speaks of billing for a quota of a minute too, and names the pause after which it answers again. */
function isUsedUp({ status, words, quotas, retryAfterMs }: Limited): boolean {
  if (SPENT.test(words) || DAILY.test(quotas)) return true;
  if (status === 429 && quotas === "" && DAILY.test(words)) return true;
  return retryAfterMs === undefined && QUOTA.test(words);
}

interface Limited {
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly words: string;
  readonly quotas: string;
}

const final = (code: ErrorCode): Verdict => ({ code, isRetryable: false });
const again = (code: ErrorCode): Verdict => ({ code, isRetryable: true });

/** FastAPI-like servers put their reason under `detail`. */
function detail(value: Json): string | undefined {
  if (value === undefined || value === null) return undefined;
  return text(value) ?? JSON.stringify(value);
}

/** Gemini says how long to wait inside the body: { "@type": "…RetryInfo", "retryDelay": "34s" }. */
function retryDelay(details: Json): number | undefined {
  if (!Array.isArray(details)) return undefined;
  for (const entry of details) {
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

export function clean(provider: Provider, words: string): string {
  // A secret may end beyond the cut, so it is taken out before the text is shortened.
  const safe = provider
    .redact(words.slice(0, MAX_MESSAGE_CHARS * 4))
    .replace(CONTROL, " ")
    .trim();
  return safe.length <= MAX_MESSAGE_CHARS ? safe : `${safe.slice(0, MAX_MESSAGE_CHARS)}… (cut)`;
}

// oxlint-disable-next-line no-control-regex -- these are what must not reach a terminal
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
