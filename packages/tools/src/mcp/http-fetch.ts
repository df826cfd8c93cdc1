/**
 * The HTTP requests of a server connection, over node's own client: every answer is bounded, redirects are not
 * followed, and no socket outlives the connection. Replaces the global `fetch` for the client library.
 */
import type { Agent as HttpAgent, IncomingMessage } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import type { Readable } from "node:stream";
import { isHeddleError } from "@heddle/protocol";
import { mcpError } from "./failure.ts";

/** As for a line of a server that Heddle starts. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** Events of one answer; a server that sends more floods. */
const MAX_EVENTS = 20_000;
const MAX_SOCKETS = 16;
const MAX_HEADER_BYTES = 64 * 1024;
/** Answers that have no body by their status; a `Response` refuses one. */
const WITHOUT_BODY = new Set([204, 205, 304]);

export interface BoundedFetch extends Disposable {
  readonly fetch: (url: string | URL, init?: RequestInit) => Promise<Response>;
}

/**
 * `onBroken`: the event stream that answers this request broke off and cannot be resumed. `isAllowed`: whether a
 * resolved address may be connected to; absent: every one.
 */
export function createBoundedFetch(
  onBroken: (requestBody: string, error: unknown) => void,
  isAllowed?: (address: string) => boolean,
): BoundedFetch {
  const lookup = isAllowed === undefined ? {} : { lookup: checkedLookup(isAllowed) };
  const options = { keepAlive: true, maxSockets: MAX_SOCKETS, ...lookup };
  const { http, https } = clients();
  const agents = { http: new http.Agent(options), https: new https.Agent(options) };
  return {
    async fetch(url, init = {}) {
      const target = new URL(url);
      const answer = await send(target, init, agents);
      const headers = new Headers();
      for (const [name, values] of Object.entries(answer.headersDistinct)) {
        for (const value of values ?? []) headers.append(name, value);
      }
      const status = answer.statusCode ?? 502;
      if (WITHOUT_BODY.has(status)) answer.resume();
      const isEventStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
      const onFailure = (error: unknown): void => {
        if (typeof init.body === "string") onBroken(init.body, error);
      };
      const chunks = isEventStream ? boundedEvents(answer, onFailure) : bounded(answer);
      const body = WITHOUT_BODY.has(status) ? null : webStream(chunks);
      return new Response(body, { status, statusText: answer.statusMessage ?? "", headers });
    },
    [Symbol.dispose]() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

/** Checked during the connection: a name checked before could resolve to another address. */
function checkedLookup(isAllowed: (address: string) => boolean): LookupFunction {
  const { lookup } = process.getBuiltinModule("node:dns");
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, "");
      const [first] = addresses;
      if (first === undefined || !addresses.every(({ address }) => isAllowed(address))) {
        return callback(mcpError(`${hostname} resolves to an address that is not safe`), "");
      }
      return options.all === true ? callback(null, addresses) : callback(null, first.address, first.family);
    });
  };
}

/**
 * Got when the first connection is made, and not by `import`: that would ask node:http for all it exports, its WebSocket
 * among them, and so load a second HTTP client into every run.
 */
const clients = () => ({
  http: process.getBuiltinModule("node:http"),
  https: process.getBuiltinModule("node:https"),
});

async function send(
  target: URL,
  init: RequestInit,
  agents: { readonly http: HttpAgent; readonly https: HttpsAgent },
): Promise<IncomingMessage> {
  const { method = "GET", body, signal } = init;
  if (body !== undefined && body !== null && typeof body !== "string") throw mcpError("only text can be sent");
  const isSecure = target.protocol === "https:";
  const options = {
    method,
    headers: Object.fromEntries(new Headers(init.headers)),
    maxHeaderSize: MAX_HEADER_BYTES,
    ...(signal === undefined || signal === null ? {} : { signal }),
  };
  return new Promise((resolve, reject) => {
    const request = isSecure
      ? clients().https.request(target, { ...options, agent: agents.https })
      : clients().http.request(target, { ...options, agent: agents.http });
    request.once("response", resolve);
    request.once("socket", calm);
    // Stays on: after the answer has begun, its own stream reports the same failure.
    request.on("error", reject);
    request.end(body ?? undefined);
  });
}

const calmed = new WeakSet<Socket>();

/**
 * An aborted request may return its socket before the socket fails; without a listener that would end the process. The
 * failure is reported by the request.
 */
function calm(socket: Socket): void {
  if (calmed.has(socket)) return;
  calmed.add(socket);
  socket.on("error", () => undefined);
}

function webStream(chunks: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await iterator.next();
      if (next.done === true) controller.close();
      else controller.enqueue(next.value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

async function* bounded(answer: Readable): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_MESSAGE_BYTES) throw mcpError(`the server's answer is larger than ${MAX_MESSAGE_BYTES} bytes`);
    yield chunk;
  }
}

const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** Each event is bounded, and their number; not the length of a stream that stays open. */
async function* boundedEvents(answer: Readable, onFailure: (error: unknown) => void): AsyncGenerator<Uint8Array> {
  const count = createEventCount();
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      count.take(chunk);
      yield chunk;
    }
  } catch (error) {
    // With ids the rest of a broken stream can be asked for; a stream beyond its bounds is not wanted any more.
    if (!count.hasIds || isHeddleError(error)) onFailure(error);
    throw error;
  }
}

function createEventCount(): { readonly hasIds: boolean; take(chunk: Buffer): void } {
  let bytes = 0;
  let events = 0;
  let hasIds = false;
  let isLineEmpty = true;
  return {
    get hasIds() {
      return hasIds;
    },
    take(chunk) {
      hasIds ||= chunk.includes("\nid:") || (isLineEmpty && chunk.subarray(0, 3).equals(ID_FIELD));
      for (const byte of chunk) {
        bytes += 1;
        if (byte === NEWLINE) {
          // An empty line ends an event.
          if (isLineEmpty) {
            bytes = 0;
            events += 1;
          }
          isLineEmpty = true;
        } else if (byte !== RETURN) isLineEmpty = false;
      }
      if (bytes > MAX_MESSAGE_BYTES) throw mcpError(`the server sent a message larger than ${MAX_MESSAGE_BYTES} bytes`);
      if (events > MAX_EVENTS) throw mcpError("the server floods Heddle with notifications");
    },
  };
}

const ID_FIELD = Buffer.from("id:");
