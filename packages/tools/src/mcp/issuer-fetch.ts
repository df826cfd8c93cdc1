/**
 * Requests to the issuers of logins for MCP servers: https, or this machine where the server itself is on it; no
 * redirects, with a deadline and a limit on the answer. An error names the address and the status, never what was sent
 * or answered.
 */
import { HeddleError } from "@heddle/protocol";
import { namesThisMachine, reachOf } from "@heddle/protocol/ip-address";
import { createBoundedFetch } from "./http-fetch.ts";

const TIMEOUT_MS = 10_000;

export interface IssuerFetch extends Disposable {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
  /** Of the last answer; 0 before the first. */
  readonly lastStatus: number;
}

export function createIssuerFetch(options: {
  readonly mayBeLocal: boolean;
  readonly signal: AbortSignal;
}): IssuerFetch {
  const bounded = createBoundedFetch(
    () => undefined,
    (address) => isAllowed(address, options.mayBeLocal),
  );
  let lastStatus = 0;
  return {
    get lastStatus() {
      return lastStatus;
    },
    async fetch(url, init = {}) {
      const target = requireSafe(String(url), options.mayBeLocal);
      const address = `${target.origin}${target.pathname}`;
      const timeout = AbortSignal.timeout(TIMEOUT_MS);
      // What the library sends is text or a form.
      const body = init.body instanceof URLSearchParams ? init.body.toString() : init.body;
      const sent = { ...init, body: body ?? null, signal: AbortSignal.any([options.signal, timeout]) };
      try {
        const response = await bounded.fetch(target, sent);
        lastStatus = response.status;
        return refuseFaults(response, address);
      } catch (error) {
        if (error instanceof HeddleError) throw error;
        if (options.signal.aborted) throw options.signal.reason;
        const why = timeout.aborted ? "no answer in time" : codeOf(error);
        throw new HeddleError("provider.unreachable", `cannot reach ${address}: ${why}`);
      }
    },
    [Symbol.dispose]: () => bounded[Symbol.dispose](),
  };
}

/** Nobody in between may read it, and a remote server must not make this machine request itself. */
export function requireSafe(text: string, mayBeLocal: boolean): URL {
  const url = URL.parse(text);
  const isLocal = url !== null && namesThisMachine(url.hostname);
  const isSafe =
    url?.protocol === "https:" ? !isLocal || mayBeLocal : url?.protocol === "http:" && isLocal && mayBeLocal;
  const isReachable = url !== null && (reachOf(url.hostname) === undefined || isAllowed(url.hostname, mayBeLocal));
  if (url !== null && isSafe && isReachable && url.username === "" && url.password === "") return url;
  throw new HeddleError(
    "login.failed",
    "the server sends its logins to an address that is not safe; no request was sent",
  );
}

/** A name is judged by the address that is connected to, an address that is written out by itself. */
function isAllowed(address: string, mayBeLocal: boolean): boolean {
  const reach = reachOf(address);
  return reach === "global" || reach === "private" || (reach === "loopback" && mayBeLocal);
}

function refuseFaults(response: Response, address: string): Response {
  const { status } = response;
  if (status >= 300 && status < 400) {
    throw new HeddleError("provider.rejected", `${address} redirects (status ${status}); a login is not sent on`);
  }
  if (status === 429) throw new HeddleError("provider.rate-limited", `${address} gets too many requests (status 429)`);
  if (status >= 500) throw new HeddleError("provider.overloaded", `${address} fails (status ${status})`);
  return response;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "no connection";
}
