/**
 * One HTTP request to an untrusted receiver: a new connection to a checked address, no proxy, no redirect, a deadline, and
 * only the status is read.
 */
import { lookup } from "node:dns";
import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { never, reasonOf } from "@heddle/protocol";
import { namesThisMachine, reachOf } from "@heddle/protocol/ip-address";
import type { SendResult } from "../sink.ts";

export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
  readonly allowsPrivate: boolean;
  readonly signal: AbortSignal;
}

/** The body is ignored; so much of it is read that the connection ends cleanly. */
const MAX_ANSWER_BYTES = 64 * 1024;

export async function post(request: Post): Promise<SendResult> {
  const { url } = request;
  const rule = { allowsPrivate: request.allowsPrivate, allowsLoopback: namesThisMachine(url.hostname) };
  const literal = url.hostname.replace(/^\[|\]$/g, "");
  // Literal addresses are not looked up, so they are checked here.
  const refusal = isIP(literal) === 0 ? undefined : refusalOf(literal, rule);
  if (refusal !== undefined) return { kind: "dead", message: refusal };
  try {
    const lookupChecked = checkedLookup((address) => refusalOf(address, rule));
    return judge(await exchange(request, lookupChecked));
  } catch (error) {
    if (error instanceof RefusedAddress) return { kind: "dead", message: error.message };
    // Never the URL itself: its path may be a secret.
    return { kind: "retry", message: `${url.host}: ${reasonOf(error)}` };
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

function exchange(post: Post, lookupChecked: LookupFunction): Promise<Answer> {
  const { url, body, timeoutMs } = post;
  const signal = AbortSignal.any([post.signal, AbortSignal.timeout(timeoutMs)]);
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(url, {
      method: "POST",
      headers: { ...post.headers, "content-length": String(Buffer.byteLength(body)) },
      // A new connection: no proxy of the environment, and no earlier connection whose address was not checked.
      agent: false,
      lookup: lookupChecked,
      signal,
    });
    request.once("error", (error) => reject(post.signal.aborted || !signal.aborted ? error : new Error("timed out")));
    request.once("response", (response) => {
      const answer = { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
      drain(response, () => resolve(answer));
    });
    request.end(body);
  });
}

/** The status is the answer; a body that does not end changes nothing. */
function drain(response: IncomingMessage, done: () => void): void {
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) response.destroy();
  });
  response.on("error", () => undefined);
  response.once("close", done);
}

/** Of a host name: the address it resolves to may not be connected to. */
export class RefusedAddress extends Error {}

/** Checked at the connection: a name checked earlier may resolve to another address by then. */
export function checkedLookup(refusal: (address: string) => string | undefined): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, "");
      const refused = addresses.map(({ address }) => refusal(address)).find((why) => why !== undefined);
      const [first] = addresses;
      if (refused !== undefined) return callback(new RefusedAddress(`${hostname}: ${refused}`), "");
      if (first === undefined) return callback(new Error(`${hostname} has no address`), "");
      if (options.all === true) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}

function judge({ status, retryAfter }: Answer): SendResult {
  if (status >= 200 && status < 300) return { kind: "delivered", status, message: `answered ${status}` };
  if (status >= 300 && status < 400) {
    return { kind: "dead", status, message: `answered ${status}: redirects are not followed; write the final address` };
  }
  const message = `answered ${status}`;
  if (status === 429 || status === 408 || status === 425 || status >= 500) {
    const afterMs = waitOf(retryAfter);
    return { kind: "retry", status, message, ...(afterMs === undefined ? {} : { afterMs }) };
  }
  return { kind: "dead", status, message };
}

function waitOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

interface AddressRule {
  readonly allowsPrivate: boolean;
  /** The URL itself names this machine. */
  readonly allowsLoopback: boolean;
}

/**
 * Why a webhook may not connect to an address: this machine only where the URL itself names it, private networks only where
 * the owner allows them, and never link-local addresses and metadata servers of clouds, which hand out credentials.
 */
export function refusalOf(address: string, rule: AddressRule): string | undefined {
  const reach = reachOf(address);
  switch (reach) {
    case undefined:
      return `${address} is not an IP address`;
    case "metadata":
      return `${address} is link-local, where cloud metadata services are`;
    case "loopback":
      return rule.allowsLoopback || rule.allowsPrivate
        ? undefined
        : `${address} is this machine; set allow_private = true`;
    case "private":
      return rule.allowsPrivate ? undefined : `${address} is private; set allow_private = true`;
    case "nowhere":
      return `${address} is not the address of a receiver`;
    case "global":
      return undefined;
    default:
      return never(reach);
  }
}
