/**
 * Requests that carry a login: only to given origins, never along a redirect, with a deadline and a limit on what is read. An
 * error names the address and the status, never what was sent or answered.
 */
import { defined, errorCodeOf, HeddleError, reasonOf } from "@heddle/protocol";
import { parseJson } from "../wire/untrusted.ts";

const TIMEOUT_MS = 10_000;
const MAX_BODY_BYTES = 4 * 1024 * 1024;

export interface PinnedRequest {
  readonly url: string;
  readonly origins: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
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
  const where = `${url.origin}${url.pathname}`;
  const { type, body } = contentOf(request);
  try {
    const response = await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      redirect: "manual",
      headers: {
        accept: "application/json",
        "user-agent": "heddle",
        ...defined({ "content-type": type }),
        ...request.headers,
      },
      ...defined({ body }),
      signal,
    });
    if (response.status >= 300 && response.status < 400 && response.status !== 304) {
      await response.body?.cancel();
      throw new HeddleError(
        "provider.rejected",
        `${where} redirects (status ${response.status}); a login is not sent there`,
      );
    }
    const text = await bodyText(response, where, request.maxBytes ?? MAX_BODY_BYTES);
    return { status: response.status, etag: response.headers.get("etag") ?? undefined, json: parseJson(text) };
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    if (request.signal?.aborted === true) throw request.signal.reason;
    const why = timeout.aborted ? "no answer in time" : connectionReason(error);
    throw new HeddleError("provider.unreachable", `cannot reach ${where}: ${why}`);
  }
}

function contentOf({ form, json }: PinnedRequest): { readonly type?: string; readonly body?: string } {
  if (form !== undefined)
    return { type: "application/x-www-form-urlencoded", body: new URLSearchParams(form).toString() };
  return json === undefined ? {} : { type: "application/json", body: JSON.stringify(json) };
}

async function bodyText(response: Response, where: string, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw new HeddleError("provider.malformed", `${where} sends an answer that is too long`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** By the code of the failure; its message may quote the address with its query. */
function connectionReason(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return errorCodeOf(cause) === undefined ? "no connection" : reasonOf(cause);
}
