/**
 * Sends spans to a collector: OTLP over HTTP, as JSON. What is sent waits in a bounded queue and is never waited for; when
 * the collector is away or slow, spans are dropped and counted. The SDK of OpenTelemetry does the same in 336 files and
 * 25 MB (decision 37).
 */
import type http from "node:http";
import { SPANS } from "@heddle/protocol/measure";
import type { Attributes, Span } from "./spans.ts";

export interface ExporterOptions {
  /** With `/v1/traces`. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** The most that wait; absent: 2,048. */
  readonly maxWaiting?: number;
  readonly everyMs?: number;
  readonly timeoutMs?: number;
}

export interface Exporter {
  add(spans: readonly Span[]): void;
  /** Sends what waits, for so long at most; what is left then is dropped. */
  close(withinMs: number): Promise<void>;
}

const MAX_WAITING = 2_048;
const BATCH = 512;
const EVERY_MS = 2_000;
const TIMEOUT_MS = 10_000;
const KINDS = { internal: 1, server: 2, client: 3 } as const;
const ERROR_STATUS = 2;

export function createExporter(options: ExporterOptions): Exporter {
  const { maxWaiting = MAX_WAITING, everyMs = EVERY_MS, timeoutMs = TIMEOUT_MS } = options;
  const closing = new AbortController();
  let waiting: Span[] = [];
  let sending: Promise<void> | undefined;
  const timer = setInterval(() => void send(), everyMs);
  timer.unref();

  async function send(): Promise<void> {
    sending ??= sendAll().finally(() => (sending = undefined));
    await sending;
  }

  async function sendAll(): Promise<void> {
    while (waiting.length > 0 && !closing.signal.aborted) {
      const batch = waiting.splice(0, BATCH);
      const isSent = await post(options, batch, AbortSignal.any([closing.signal, AbortSignal.timeout(timeoutMs)]));
      SPANS.publish({ outcome: isSent ? "sent" : "dropped", count: batch.length });
      // The next ones are tried at the next beat: a collector that is away is not asked without pause.
      if (!isSent) return;
    }
  }

  return {
    add(spans) {
      const room = Math.max(0, maxWaiting - waiting.length);
      waiting.push(...spans.slice(0, room));
      if (spans.length > room) SPANS.publish({ outcome: "dropped", count: spans.length - room });
    },
    async close(withinMs) {
      clearInterval(timer);
      const overdue = setTimeout(() => closing.abort(), withinMs);
      await sending;
      await send();
      clearTimeout(overdue);
      closing.abort();
      if (waiting.length > 0) SPANS.publish({ outcome: "dropped", count: waiting.length });
      waiting = [];
    },
  };
}

/** False: the collector did not take them. */
async function post(options: ExporterOptions, spans: readonly Span[], signal: AbortSignal): Promise<boolean> {
  const body = Buffer.from(JSON.stringify(encode(options, spans)));
  const headers = { ...options.headers, "content-type": "application/json", "content-length": body.length };
  const { request } = process.getBuiltinModule(options.url.protocol === "https:" ? "node:https" : "node:http");
  return new Promise((resolve) => {
    const sent = request(options.url, { method: "POST", headers, signal, agent: false }, (response) => {
      response.resume();
      response.on("error", () => undefined).on("close", () => resolve(isTaken(response)));
    });
    sent.on("error", () => resolve(false)).end(body);
  });
}

function isTaken({ statusCode = 0 }: http.IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

function encode({ serviceName }: Pick<ExporterOptions, "serviceName">, spans: readonly Span[]): object {
  const resource = { attributes: encoded({ "service.name": serviceName }) };
  return {
    resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "heddle" }, spans: spans.map(encodeSpan) }] }],
  };
}

function encodeSpan({ traceId, spanId, parentId, name, kind, startMs, endMs, attributes, failure }: Span): object {
  return {
    traceId,
    spanId,
    ...(parentId === undefined ? {} : { parentSpanId: parentId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(Math.max(startMs, endMs)),
    attributes: encoded(failure === undefined ? attributes : { ...attributes, "error.type": failure }),
    ...(failure === undefined ? {} : { status: { code: ERROR_STATUS } }),
  };
}

function nanos(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n);
}

function encoded(attributes: Attributes): readonly object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: typed(value) }],
  );
}

function typed(value: string | number): object {
  if (typeof value === "string") return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
