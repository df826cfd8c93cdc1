/**
 * One try at a request: encoded once, sent as often as `streamModel` says. A source yields what the model says and ends
 * with `answered`, or fails with a ProviderError that tells whether another try may help.
 */
import type { HeddleError } from "@heddle/protocol";
import { Answer, type AnswerEvent, type RequestProgress } from "./answer.ts";
import { withFittingCallIds } from "../wire/call-ids.ts";
import { modelInfo } from "../catalog/catalog.ts";
import { connectAhead } from "./connection.ts";
import { openExchange, type Exchange } from "./exchange.ts";
import { cut, failureIn, failureOfReport, malformed, ProviderError, readReport } from "./failure.ts";
import type { Hosting } from "../wire/hosting.ts";
import { segment } from "../wire/path-segment.ts";
import { isHostedElsewhere, type Outgoing } from "../providers/provider-auth.ts";
import type { Provider, WireName } from "../providers/providers.ts";
import { withFittingEffort } from "../catalog/efforts.ts";
import { callIdRule } from "../catalog/quirks.ts";
import { readRetryAfter } from "./retry.ts";
import { EventReader, type EventSource } from "./sse.ts";
import type { ModelInput, ModelRequest } from "./stream.ts";
import { codexUserAgent } from "./user-agent.ts";
import { repairHistory } from "../wire/history.ts";
import { parseJson, writeJson } from "../wire/untrusted.ts";
import type { Decoder, ServerEvent, Wire, WireCall, WireContext } from "../wire/wire.ts";

/** More than any model writes; a server that never stops must not fill the memory. */
const MAX_ANSWER_MIB = 64;
const MAX_ANSWER_BYTES = MAX_ANSWER_MIB * 1024 * 1024;
/** Enough for the reason in an error body. */
const MAX_ERROR_BYTES = 64 * 1024;
/** After the reason to stop, usage and end mark follow at once or not at all. */
const SETTLED_GRACE_MS = 5000;

const UNAUTHORIZED = 401;

export interface Source extends AsyncDisposable {
  /** The events since the last call, `answered` last; may be empty. */
  read(): Promise<readonly AnswerEvent[]>;
}

export interface AttemptOptions {
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly progress?: RequestProgress | undefined;
}

export interface Attempts {
  readonly requestBytes: number;
  open(options: AttemptOptions): Promise<Source>;
}

/** Loads what the first request to a provider needs and starts to connect, ahead of need. */
export async function warmProvider(provider: Provider): Promise<void> {
  if (provider.wire === "scripted") return;
  // The login names the address of Copilot.
  const address = provider.auth === "copilot" ? provider.credential?.address?.() : provider.baseUrl;
  if (address !== undefined) connectAhead(new URL(address));
  await Promise.all([loadWire(provider.wire), loadHosting(provider)]);
}

/** As the original tells it; what a header cannot hold is blanked. */
function callerHeaders(caller: string | undefined): Readonly<Record<string, string>> {
  if (caller === undefined) return { "user-agent": "heddle" };
  const originator = caller.replaceAll(/[^\x20-\x7e]/g, "_");
  return { originator, "user-agent": codexUserAgent(originator, "heddle") };
}

export async function prepareAttempts(provider: Provider, request: ModelRequest): Promise<Attempts> {
  if (provider.wire === "scripted") {
    const { prepareScripted } = await import("../scripted/scripted.ts");
    return prepareScripted(provider, request);
  }
  const wire = await loadWire(provider.wire);
  const context: WireContext = { provider, request, info: modelInfo(provider, request.model) };
  const encoded = wire.encode({
    ...context,
    request: {
      ...withFittingEffort(request, context.info),
      input: withFittingCallIds(repairHistory(context), callIdRule(provider)),
    },
  });
  const hosting = await loadHosting(provider);
  const call = hosting === undefined ? encoded : hosting.adapt(encoded, request.model);
  const body = writeJson(call.body);
  const requestBytes = Buffer.byteLength(body);
  const common = {
    accept: "text/event-stream",
    "accept-encoding": "identity",
    ...call.headers,
    ...provider.headers(),
    // Part of what is signed.
    ...joinedBetas([call.headers, provider.headers()]),
    "content-type": "application/json",
    "content-length": String(requestBytes),
  };
  const urlAt = (baseUrl: string): URL => buildUrl({ baseUrl, query: provider.query, call, model: request.model });
  const outgoing: Outgoing = { method: "POST", url: urlAt(provider.baseUrl), headers: common, body, ...aimOf(request) };
  const send = async (signal: AbortSignal, progress: AttemptOptions["progress"]): Promise<Exchange> => {
    const login = await provider.credential?.headers(provider.wire, signal, outgoing);
    const address = provider.credential?.address?.();
    return openExchange({
      provider,
      url: address === undefined ? outgoing.url : urlAt(address),
      // A login says by itself who it was made for.
      headers: {
        ...callerHeaders(provider.caller ?? request.caller),
        ...login,
        ...common,
        ...joinedBetas([login, common]),
      },
      body,
      signal,
      progress,
    });
  };
  let mayRenew = provider.credential !== undefined;
  return {
    requestBytes,
    open: async ({ signal, progress }) => {
      let exchange = await send(signal, progress);
      // Once per request: a login may have ended early, or been renewed by another process.
      if (exchange.status === UNAUTHORIZED && mayRenew) {
        mayRenew = false;
        if (await renewed(provider, exchange, signal)) exchange = await send(signal, progress);
      }
      const events = hosting?.createReader?.(provider) ?? new EventReader(provider);
      return new HttpSource({ exchange, events, provider, decode: (answer) => wire.decode(context, answer), progress });
    },
  };
}

const BETAS = "anthropic-beta";

/** One header with what the wire needs, a login brings and the user configures. */
function joinedBetas(sources: readonly (Readonly<Record<string, string>> | undefined)[]): Record<string, string> {
  const betas = sources.flatMap((headers) => headers?.[BETAS]?.split(",") ?? []).map((beta) => beta.trim());
  return betas.length === 0 ? {} : { [BETAS]: [...new Set(betas)].join(",") };
}

/** True when there is another login to try; the refused exchange is closed then. */
async function renewed(provider: Provider, refused: Exchange, signal: AbortSignal): Promise<boolean> {
  let hasOther: boolean;
  try {
    hasOther = (await provider.credential?.renew(signal)) ?? false;
  } catch (error) {
    await refused[Symbol.asyncDispose]();
    throw error;
  }
  if (hasOther) await refused[Symbol.asyncDispose]();
  return hasOther;
}

/** Loads only the wire that is used: every `exec` waits for this. */
async function loadWire(name: Exclude<WireName, "scripted">): Promise<Wire> {
  switch (name) {
    case "openai-responses":
      return (await import("../wire/openai-responses.ts")).openaiResponses;
    case "openai-chat":
      return (await import("../wire/openai-chat.ts")).openaiChat;
    case "anthropic":
      return (await import("../wire/anthropic.ts")).anthropic;
    case "gemini":
      return (await import("../wire/gemini.ts")).gemini;
  }
}

/** Where another company serves a maker's models, requests and frames of answers differ. */
async function loadHosting(provider: Provider): Promise<Hosting | undefined> {
  if (!isHostedElsewhere(provider)) return undefined;
  return (await import("../wire/hosting.ts")).hostingOf(provider.auth);
}

type Called = { readonly call: WireCall; readonly model: string };

/** Whether the user has just given input, and whether it has images. */
function aimOf({ input }: ModelRequest): Pick<Outgoing, "isFollowUp" | "hasImages"> {
  const imagesOf = (entry: ModelInput): boolean =>
    entry.kind !== "assistant" && entry.parts.some(({ type }) => type === "image");
  return { isFollowUp: input.at(-1)?.kind !== "user", hasImages: input.some(imagesOf) };
}

function buildUrl({ baseUrl, query, call, model }: Pick<Provider, "baseUrl" | "query"> & Called): URL {
  const url = new URL(baseUrl.replaceAll("{model}", () => segment(model)));
  url.hash = "";
  url.pathname = url.pathname.replace(/\/+$/, "") + call.path;
  for (const [name, value] of Object.entries({ ...call.query, ...query })) url.searchParams.set(name, value);
  return url;
}

interface SourceOptions {
  readonly exchange: Exchange;
  readonly events: EventSource;
  readonly provider: Provider;
  readonly decode: (answer: Answer) => Decoder;
  readonly progress: AttemptOptions["progress"];
}

class HttpSource implements Source {
  readonly #exchange: Exchange;
  readonly #provider: Provider;
  readonly #answer: Answer;
  readonly #decoder: Decoder;
  readonly #events: EventSource;
  readonly #progress: SourceOptions["progress"];
  #isStream = false;
  #receivedBytes = 0;

  constructor({ exchange, events, provider, decode, progress }: SourceOptions) {
    this.#exchange = exchange;
    this.#provider = provider;
    this.#answer = new Answer(progress);
    this.#progress = progress;
    this.#decoder = decode(this.#answer);
    this.#events = events;
  }

  async read(): Promise<readonly AnswerEvent[]> {
    if (this.#exchange.status < 200 || this.#exchange.status >= 300) throw await this.#refusal();
    let chunk: Buffer | undefined;
    try {
      chunk = await this.#exchange.read(this.#answer.isSettled ? SETTLED_GRACE_MS : undefined);
    } catch (error) {
      return this.#settleFor(error);
    }
    if (chunk === undefined) this.#end();
    else await this.#accept(chunk);
    if (this.#answer.isFinished) this.#exchange.release();
    return this.#answer.take();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#exchange[Symbol.asyncDispose]();
  }

  async #accept(chunk: Buffer): Promise<void> {
    this.#receivedBytes += chunk.length;
    this.#progress?.received();
    if (this.#receivedBytes > MAX_ANSWER_BYTES)
      throw malformed(this.#provider, `more than ${MAX_ANSWER_MIB} MiB as one answer`, this.#exchange.head);
    if (!this.#isStream) {
      const first = chunk.toString("latin1").replace(/^(\u00ef\u00bb\u00bf)?\s*/, "");
      if (first.startsWith("<")) throw malformed(this.#provider, "a web page instead of an answer", chunk);
      if (first.startsWith("{") || first.startsWith("[")) throw await this.#document(chunk);
      this.#isStream = first !== "";
    }
    for (const event of this.#events.feed(chunk)) this.#push(event);
  }

  #push(event: ServerEvent): void {
    if (!this.#answer.isFinished && this.#decoder.push(event)) this.#exchange.progressed();
  }

  #end(): void {
    const whole = this.#answer.isFinished;
    try {
      for (const event of this.#events.end()) this.#push(event);
    } catch (error) {
      // Half an event at the end means that the stream was cut.
      if (!(error instanceof ProviderError) || error.code !== "provider.malformed") throw error;
    }
    this.#decoder.end();
    if (!whole && !this.#answer.isFinished) throw cut(this.#provider, "before it was complete", this.#exchange.head);
  }

  /** A connection that breaks after the model has finished does no harm. */
  #settleFor(error: unknown): readonly AnswerEvent[] {
    const isHarmless =
      error instanceof ProviderError && (error.code === "provider.stalled" || error.code === "provider.cut");
    if (!isHarmless || !this.#answer.isSettled) throw error;
    this.#decoder.end();
    if (!this.#answer.isFinished) throw error;
    return this.#answer.take();
  }

  /** One JSON document instead of a stream is an error, whatever its status. */
  async #document(first: Buffer): Promise<HeddleError> {
    const body = await this.#rest([first]);
    const failure = failureIn(this.#provider, parseJson(body.toString("utf8")));
    return failure ?? malformed(this.#provider, "a single document instead of a stream", body);
  }

  async #refusal(): Promise<HeddleError> {
    const { status, headers } = this.#exchange;
    if (status >= 300 && status < 400) return this.#redirect();
    const body = (await this.#rest([])).toString("utf8");
    const report = readReport(parseJson(body)) ?? { kind: "", message: body.trimStart().startsWith("<") ? "" : body };
    const requestId = headers["x-request-id"] ?? headers["request-id"];
    return failureOfReport(this.#provider, {
      ...report,
      status,
      isRefusal: true,
      retryAfterMs: readRetryAfter(headers) ?? report.retryAfterMs,
      requestId: typeof requestId === "string" ? requestId : undefined,
    });
  }

  /** Not followed: the key would be sent to an unknown host. */
  #redirect(): HeddleError {
    const target = URL.parse(this.#exchange.headers.location ?? "", this.#provider.baseUrl);
    const where = target === null ? "elsewhere" : `${target.origin}${this.#provider.redact(target.pathname)}`;
    const message = `${this.#provider.name} redirects to ${where} (status ${this.#exchange.status}); if that is right, set it as base URL`;
    return new ProviderError("provider.rejected", message, {
      isRetryable: false,
      details: { status: this.#exchange.status },
    });
  }

  async #rest(chunks: Buffer[]): Promise<Buffer> {
    let size = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    try {
      while (size < MAX_ERROR_BYTES) {
        const chunk = await this.#exchange.read();
        if (chunk === undefined) break;
        chunks.push(chunk);
        size += chunk.length;
      }
      if (size < MAX_ERROR_BYTES) this.#exchange.release();
    } catch (error) {
      // The status is known already; the part of the body that arrived is used. An abort is thrown.
      if (!(error instanceof ProviderError)) throw error;
    }
    return Buffer.concat(chunks).subarray(0, MAX_ERROR_BYTES);
  }
}
