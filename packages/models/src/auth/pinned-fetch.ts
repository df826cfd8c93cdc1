/**
 * Requests that carry a login: only to origins named beforehand, never along a redirect, with a deadline and a bound on what
 * is read. An error names the place and the status, never what was sent or answered.
 */
import { HeddleError } from "@heddle/protocol";

const TIMEOUT_MS = 10_000;
const MAX_BODY_BYTES = 4 * 1024 * 1024;

export interface PinnedRequest {
  readonly url: string;
  /** The only origins that may be asked. */
  readonly origins: readonly string[];
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent as a form, anything else as JSON. */
  readonly form?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly timeoutMs?: number | undefined;
  readonly maxBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface PinnedAnswer {
  readonly status: number;
  readonly etag: string | undefined;
  /** undefined when the body is not JSON. */
  readonly json: unknown;
}

export async function pinnedFetch(request: PinnedRequest): Promise<PinnedAnswer> {
  const url = URL.parse(request.url);
  if (url === null || !request.origins.includes(url.origin)) {
    throw new HeddleError("policy.denied", `a login is sent only to ${request.origins.join(", ")}`);
  }
  const timeout = AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS);
  const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
  const place = `${url.origin}${url.pathname}`;
  try {
    const response = await fetch(url, {
      method: request.method ?? (request.form === undefined && request.json === undefined ? "GET" : "POST"),
      redirect: "manual",
      headers: { accept: "application/json", "user-agent": "heddle", ...bodyHeaders(request), ...request.headers },
      ...bodyOf(request),
      signal,
    });
    if (response.status >= 300 && response.status < 400 && response.status !== 304) {
      await response.body?.cancel();
      throw new HeddleError(
        "provider.rejected",
        `${place} redirects (status ${response.status}); a login is not sent on`,
      );
    }
    const etag = response.headers.get("etag") ?? undefined;
    return {
      status: response.status,
      etag,
      json: parsed(await bodyText(response, place, request.maxBytes ?? MAX_BODY_BYTES)),
    };
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    if (request.signal?.aborted === true) throw request.signal.reason;
    const why = timeout.aborted ? "no answer in time" : reasonOf(error);
    throw new HeddleError("provider.unreachable", `cannot reach ${place}: ${why}`);
  }
}

function bodyHeaders({ form, json }: PinnedRequest): Record<string, string> {
  if (form !== undefined) return { "content-type": "application/x-www-form-urlencoded" };
  return json === undefined ? {} : { "content-type": "application/json" };
}

function bodyOf({ form, json }: PinnedRequest): { body?: string } {
  if (form !== undefined) return { body: new URLSearchParams(form).toString() };
  return json === undefined ? {} : { body: JSON.stringify(json) };
}

async function bodyText(response: Response, place: string, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw new HeddleError("provider.malformed", `${place} sends an answer that is too long`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The code of the failure; its words may quote the address with its query. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "no connection";
}
