/**
 * A model server for tests: real HTTP on 127.0.0.1, the same scripts as the scripted model, in all four wires, with
 * faults on demand. It records its requests.
 *
 *   await using server = await startModelServer({ script: [{ text: "hi" }], faults: [{ kind: "status", status: 503 }] });
 *   const provider = resolveProvider([server.provider("anthropic")], "test", {});
 */
import { once } from "node:events";
import { setImmediate as nextTurnOfLoop, setTimeout as wait } from "node:timers/promises";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { ProviderConfig } from "../providers/providers.ts";
import { stepAt, type Script, type ScriptStep } from "../scripted/script.ts";
import { awsChunk } from "./testing-aws.ts";
import { countAnswers, framesOf, toText, type Frame, type HttpWire } from "./testing-frames.ts";
import { refusalOf } from "./testing-rules.ts";
import { listenAnywhere } from "./testing-server.ts";
import { parseJson, record, text } from "../wire/untrusted.ts";

export { awsRefusal, type AwsJudge } from "./testing-aws.ts";
export { startGoogle, type TestGoogle } from "./testing-google.ts";
export { startGithub, type TestGithub } from "./testing-github.ts";
export type { HttpWire } from "./testing-frames.ts";

/** Where in an answer a fault happens. `mid-delta` and `mid-args`: inside the bytes of such an event. */
export type FaultPoint = "before-headers" | "after-headers" | "mid-delta" | "mid-args" | "after-last-delta";

export type Fault =
  /** A refusal, with any body; an object is sent as JSON. */
  | {
      readonly kind: "status";
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Record<string, string>;
    }
  /** Nothing more comes, and the connection stays open. */
  | { readonly kind: "stall"; readonly at: FaultPoint }
  /** The answer ends early but in order: a chunked body that is closed. */
  | { readonly kind: "cut"; readonly at: Exclude<FaultPoint, "before-headers"> }
  /** The connection is reset. */
  | { readonly kind: "reset"; readonly at: FaultPoint }
  /** Status 200 and this body, whatever it is. */
  | { readonly kind: "body"; readonly body: string | Buffer; readonly contentType?: string }
  /** A line that is not JSON after the first event. */
  | { readonly kind: "malformed" }
  | { readonly kind: "bad-utf8" }
  /** Events that no wire knows between the others. */
  | { readonly kind: "unknown-events" }
  /** CRLF and CR in place of LF, in turn. */
  | { readonly kind: "line-ends" }
  /** The body in pieces of so many bytes, each in a packet of its own. */
  | { readonly kind: "pieces"; readonly bytes: number }
  /** One byte at a time, slowly. */
  | { readonly kind: "drip"; readonly everyMs: number }
  /** Comments without end after the first event. */
  | { readonly kind: "comments"; readonly everyMs: number }
  /** Events of one kind without end. */
  | { readonly kind: "endless"; readonly data: string }
  | { readonly kind: "huge-event"; readonly bytes: number }
  /** The answer is whole, but its end mark is missing. */
  | { readonly kind: "no-end-mark" }
  /** The output limit is reached inside the first part: it ends unsigned, and nothing follows it. */
  | { readonly kind: "out-of-tokens" };

export interface RecordedRequest {
  readonly number: number;
  readonly wire: HttpWire;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  /** The body as it came. */
  readonly source: string;
  readonly bytes: number;
  /** Answers of the model that the request already holds; the step played. */
  readonly answers: number;
  /** Resolves when the answer has ended or the client has disconnected. */
  readonly closed: Promise<void>;
}

export interface ModelServerOptions {
  readonly script?: Script;
  /** Decides each answer instead of a script. */
  readonly respond?: (request: RecordedRequest) => ScriptStep | Promise<ScriptStep>;
  /** The fault of the nth request, or a function of the request; none beyond the end of the list. */
  readonly faults?: readonly (Fault | undefined)[] | ((request: RecordedRequest) => Fault | undefined);
  readonly deltaChars?: number;
}

export interface ModelServer extends AsyncDisposable {
  /** http://127.0.0.1:<port> */
  readonly url: string;
  readonly requests: readonly RecordedRequest[];
  readonly openConnections: number;
  /** Resolves when request `number` (from 0) has arrived. */
  arrived(number: number): Promise<RecordedRequest>;
  /** A config entry for `resolveProvider`, id `test`, key `test-key`, short pauses between retries. */
  provider(wire: HttpWire, overrides?: Partial<ProviderConfig>): ProviderConfig;
}

export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const requests: RecordedRequest[] = [];
  const waiting = new Map<number, (request: RecordedRequest) => void>();
  const failures: unknown[] = [];
  const sockets = new Set<object>();
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      failures.push(error);
      response.destroy();
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  });

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming, response, requests.length);
    if (request === undefined) {
      response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"no such path"}}');
      return;
    }
    requests.push(request);
    waiting.get(request.number)?.(request);
    const step = await (options.respond?.(request) ?? stepAt(options.script ?? [], request.answers));
    const faults = options.faults ?? [];
    const fault = typeof faults === "function" ? faults(request) : faults[request.number];
    const isCut = fault?.kind === "out-of-tokens";
    const frames = framesOf(request.wire, { step, ...request, isCut, deltaChars: options.deltaChars ?? 24 });
    if (request.path.endsWith(BEDROCK_PATH) && fault === undefined) return playAwsFrames(response, frames);
    await new Player(response, frames).play(fault ?? refusalOf(request));
  }

  const url = await listenAnywhere(server);
  return {
    url,
    requests,
    get openConnections() {
      return sockets.size;
    },
    arrived: async (number) => {
      const known = requests[number];
      if (known !== undefined) return known;
      const { promise, resolve } = Promise.withResolvers<RecordedRequest>();
      waiting.set(number, resolve);
      return promise;
    },
    provider: (wire, overrides) => ({
      id: "test",
      name: "Test",
      wire,
      baseUrl: `${url}${wire === "gemini" ? "/v1beta" : "/v1"}`,
      key: "test-key",
      retryBaseMs: 1,
      maxAttempts: 5,
      requestAttempts: 1,
      ...overrides,
    }),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
      // A test must not pass when its server failed.
      if (failures.length > 0) throw new AggregateError(failures, "the model server failed");
    },
  };
}

const BEDROCK_PATH = "/invoke-with-response-stream";

/** As Bedrock frames the events of Claude. */
function playAwsFrames(response: ServerResponse, frames: readonly Frame[]): void {
  response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
  for (const { data } of frames) response.write(awsChunk(data));
  response.end();
}

const PATHS: readonly (readonly [RegExp, HttpWire])[] = [
  [/\/responses$/, "openai-responses"],
  [/\/chat\/completions$/, "openai-chat"],
  [/\/messages$/, "anthropic"],
  [/:streamGenerateContent$/, "gemini"],
  [/:streamRawPredict$/, "anthropic"],
  [/\/invoke-with-response-stream$/, "anthropic"],
];

async function readRequest(
  incoming: IncomingMessage,
  response: ServerResponse,
  number: number,
): Promise<RecordedRequest | undefined> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) if (Buffer.isBuffer(chunk)) chunks.push(chunk);
  const source = Buffer.concat(chunks).toString("utf8");
  const bytes = Buffer.byteLength(source);
  const path = incoming.url ?? "";
  const wire = PATHS.find(([pattern]) => pattern.test(path.split("?")[0] ?? ""))?.[1];
  const body = parseJson(source);
  if (wire === undefined || record(body) === undefined) return undefined;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  response.on("close", resolve);
  const { headers } = incoming;
  return { number, wire, path, headers, body, source, bytes, answers: countAnswers(wire, body), closed };
}

/** Sends frames, and stops at the fault. */
class Player {
  readonly #response: ServerResponse;
  readonly #frames: readonly Frame[];

  constructor(response: ServerResponse, frames: readonly Frame[]) {
    this.#response = response;
    this.#frames = frames;
  }

  async play(fault: Fault | undefined): Promise<void> {
    if (fault?.kind === "status") return this.#refuse(fault);
    if (fault !== undefined && "at" in fault) return this.#breakOff(fault);
    if (fault?.kind === "body") {
      this.#open(fault.contentType ?? "text/event-stream");
      this.#response.end(fault.body);
      return;
    }
    this.#open();
    await this.#stream(fault);
  }

  #refuse(fault: Fault & { kind: "status" }): void {
    const body = text(fault.body) ?? JSON.stringify(fault.body ?? { error: { message: `status ${fault.status}` } });
    this.#response.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
    this.#response.end(body);
  }

  #open(contentType = "text/event-stream"): void {
    this.#response.writeHead(200, { "content-type": contentType });
    this.#response.flushHeaders();
  }

  async #breakOff({ kind, at }: Fault & { at: FaultPoint }): Promise<void> {
    if (at !== "before-headers") this.#open();
    const before = this.#bytesBefore(at);
    // The bytes are sent before the connection closes, so that the client sees both, in this order.
    if (before !== "") await this.#write(before);
    if (kind === "cut") this.#response.end();
    if (kind === "reset") this.#response.socket?.resetAndDestroy();
  }

  #bytesBefore(at: FaultPoint): string {
    if (at === "before-headers" || at === "after-headers") return "";
    const isLast = at === "after-last-delta";
    const stop = isLast ? "end" : at === "mid-delta" ? "delta" : "args";
    const index = this.#frames.findIndex((frame) => frame.kind === stop);
    const frame = this.#frames[index];
    if (frame === undefined) throw new Error(`the answer has no event for the fault at ${at}`);
    const whole = this.#frames.slice(0, index).map(toText).join("");
    const half = toText(frame);
    return isLast ? whole : whole + half.slice(0, Math.floor(half.length / 2));
  }

  async #stream(fault: Exclude<Fault, { at: FaultPoint } | { kind: "status" | "body" }> | undefined): Promise<void> {
    const [first = "", ...rest] = this.#frames.map(toText);
    const whole = first + rest.join("");
    switch (fault?.kind) {
      case undefined:
      case "out-of-tokens":
        for (const frame of [first, ...rest]) this.#response.write(frame);
        break;
      case "malformed":
        await this.#write(`${first}data: {"type": "response.output_text.delta", "delta": \n\n${rest.join("")}`);
        break;
      case "bad-utf8":
        await this.#write(
          Buffer.concat([Buffer.from(first), Buffer.from([0xc3, 0x28, 0xff]), Buffer.from(rest.join(""))]),
        );
        break;
      case "unknown-events":
        for (const frame of [first, ...rest])
          await this.#write(`${frame}event: novelty\ndata: {"type":"novelty","x":1}\n\n`);
        break;
      case "line-ends":
        await this.#write(whole.replaceAll("\n\n", "\r\n\r").replaceAll(/\n(?!\r)/g, "\r\n"));
        break;
      case "pieces":
      case "drip":
        await this.#inPieces(Buffer.from(whole), { bytes: 1, everyMs: 0, ...fault });
        break;
      case "comments":
        await this.#write(first);
        return this.#forever(": still here\n\n", fault.everyMs);
      case "endless":
        return this.#forever(`data: ${fault.data}\n\n`, 0);
      case "huge-event":
        await this.#write(`${first}data: "${"x".repeat(fault.bytes)}"\n\n`);
        break;
      case "no-end-mark":
        await this.#write(this.#frames.slice(0, -1).map(toText).join(""));
        break;
    }
    this.#response.end();
  }

  async #inPieces(whole: Buffer, { bytes, everyMs }: { bytes: number; everyMs: number }): Promise<void> {
    this.#response.socket?.setNoDelay(true);
    for (let start = 0; start < whole.length && !this.#response.destroyed; start += bytes) {
      await this.#write(whole.subarray(start, start + bytes));
      await (everyMs === 0 ? nextTurnOfLoop() : wait(everyMs));
    }
  }

  async #forever(text: string, everyMs: number): Promise<void> {
    while (!this.#response.destroyed) {
      await this.#write(text);
      await (everyMs === 0 ? nextTurnOfLoop() : wait(everyMs));
    }
  }

  /** Resolves when the bytes are sent, or the client has disconnected. */
  async #write(bytes: string | Buffer): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#response.once("close", resolve);
    this.#response.write(bytes, () => resolve());
    await promise;
    this.#response.removeListener("close", resolve);
  }
}
