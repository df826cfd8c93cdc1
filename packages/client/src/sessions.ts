/**
 * Sessions in an envelope, for a program that is an agent itself: it calls the tools of a Heddle server over one WebSocket, and
 * Heddle holds it inside its envelope. The end of the connection fails everything that waits for an answer; nothing is sent
 * again by itself, because a call may have had its effect. With the same call id it can be: that never runs it twice.
 */
import type {
  SessionAnswers,
  SessionMethod,
  SessionNotification,
  SessionParams,
  SessionSaid,
} from "@heddle/protocol/sessions";
import { HeddleApiError } from "./api-error.ts";

export interface ConnectOptions {
  /** Where the server listens, such as `http://127.0.0.1:4617`. */
  readonly url: string;
  readonly token: string;
  /** As which the client is on record. */
  readonly name?: string;
  /** Of another library where there is none, as on Node 20. */
  readonly WebSocket?: typeof WebSocket;
  readonly signal?: AbortSignal;
}

/** Said by the server: what calls put out, and that somebody else speaks for a session, or that it has ended. */
export type SessionNote = {
  readonly [N in SessionNotification]: { readonly method: N; readonly params: SessionSaid[N] };
}[SessionNotification];

export interface ToolCallOptions {
  /** The same id again gets the first result; absent: a new one. */
  readonly callId?: string;
  /** Gets what the call puts out, live. */
  readonly onOutput?: (text: string) => void;
  /** Cancels the call, whose result then says so. */
  readonly signal?: AbortSignal;
}

export async function connectSessions(options: ConnectOptions): Promise<SessionConnection> {
  const connection = new SessionConnection(await openSocket(options));
  const clientInfo = { name: options.name ?? "heddle-client", version: "1" };
  await connection.ask("initialize", { clientInfo });
  return connection;
}

async function openSocket({ url, token, WebSocket: given, signal }: ConnectOptions): Promise<WebSocket> {
  const Socket = given ?? globalThis.WebSocket;
  if (typeof Socket !== "function") throw new TypeError("there is no WebSocket here; give one to connectSessions");
  signal?.throwIfAborted();
  const address = new URL("/", url);
  const origin = address.origin;
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.searchParams.set("token", token);
  const socket = new Socket(address);
  const refused = new HeddleApiError("server.unreachable", `cannot reach ${origin}, or it refuses this token`);
  const stop = (): void => socket.close();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve(), { once: true });
      socket.addEventListener("error", () => reject(refused));
      socket.addEventListener("close", () => reject(refused));
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  return socket;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export class SessionConnection {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<(note: SessionNote) => void>();
  /** Resolves when the connection has ended, whoever ended it. */
  readonly closed: Promise<void>;
  #nextId = 1;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#receive(String(data)));
    this.closed = new Promise((resolve) => {
      socket.addEventListener("close", () => {
        this.#end();
        resolve();
      });
    });
  }

  /** Begins a session: a turn whose agent is this program. */
  async enter(params: SessionParams["envelope/enter"] = {}): Promise<EnvelopeSession> {
    return new EnvelopeSession(this, await this.call("envelope/enter", params));
  }

  /** Speaks for a session from here on; with `after`, what was answered behind that cursor. A session may have ended. */
  attach(params: SessionParams["envelope/attach"]): Promise<SessionAnswers["envelope/attach"]> {
    return this.call("envelope/attach", params);
  }

  /** The same, of a session that has to be open. */
  async resume(turnId: string): Promise<EnvelopeSession> {
    const found = await this.attach({ turnId });
    if (found.state === "open") return new EnvelopeSession(this, found);
    const { status, failure } = found.end;
    throw new HeddleApiError("turn.not-found", `session ${turnId} has ended: ${failure?.message ?? status}`);
  }

  async sessions(): Promise<SessionAnswers["envelope/sessions"]["data"]> {
    return (await this.call("envelope/sessions", {})).data;
  }

  call<M extends SessionMethod>(method: M, params: SessionParams[M]): Promise<SessionAnswers[M]> {
    // The server's own answer; unknown keys are left to later versions.
    return this.ask(method, params) as Promise<SessionAnswers[M]>;
  }

  /** Returns a function that removes the listener. */
  onNote(listener: (note: SessionNote) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  ask(method: string, params: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#socket.readyState !== this.#socket.OPEN) return reject(gone());
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  /** What becomes of its sessions is what `onDisconnect` of each says. */
  async close(): Promise<void> {
    this.#socket.close();
    await this.closed;
  }

  #receive(text: string): void {
    const message = JSON.parse(text) as Message;
    if (typeof message.method === "string") {
      for (const listener of this.#listeners) listener(message as SessionNote);
      return;
    }
    const waiting = typeof message.id === "number" ? this.#waiting.get(message.id) : undefined;
    if (waiting === undefined || typeof message.id !== "number") return;
    this.#waiting.delete(message.id);
    if (message.error === undefined) waiting.resolve(message.result);
    else waiting.reject(refusalOf(message.error));
  }

  #end(): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(gone());
    this.#listeners.clear();
  }
}

interface Message {
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

/** One session, as its agent has it. */
export class EnvelopeSession {
  readonly threadId: string;
  readonly turnId: string;
  readonly #connection: SessionConnection;
  #surface: Pick<SessionAnswers["envelope/enter"], "envelope" | "envelopeHash" | "tools">;

  constructor(connection: SessionConnection, entered: Omit<SessionAnswers["envelope/enter"], "cursor" | "idleSec">) {
    this.#connection = connection;
    this.threadId = entered.threadId;
    this.turnId = entered.turnId;
    this.#surface = entered;
  }

  /** As of the last hop. */
  get envelope(): SessionAnswers["envelope/enter"]["envelope"] {
    return this.#surface.envelope;
  }

  get envelopeHash(): string {
    return this.#surface.envelopeHash;
  }

  get tools(): SessionAnswers["envelope/enter"]["tools"] {
    return this.#surface.tools;
  }

  /**
   * A call that is refused, or fails, is a result too. Calls are carried out one after the other. One that was made before the
   * answer to a hop is refused behind it (`envelope.changed`): it was meant for another envelope.
   */
  async tool(
    tool: string,
    given: Readonly<Record<string, unknown>> = {},
    { callId = crypto.randomUUID(), onOutput, signal }: ToolCallOptions = {},
  ): Promise<SessionAnswers["tool/call"]> {
    const { turnId } = this;
    const forget = this.#connection.onNote(({ method, params }) => {
      if (method === "tool/output" && params.turnId === turnId && params.callId === callId) onOutput?.(params.delta);
    });
    // Its result says that it was cancelled, or the connection is gone.
    const cancel = (): void => void this.cancel(callId).catch(() => undefined);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const { envelopeHash } = this;
      const asked = { turnId, callId, tool, arguments: { ...given }, envelopeHash };
      const answer = this.#connection.call("tool/call", asked);
      if (signal?.aborted === true) cancel();
      return await answer;
    } finally {
      signal?.removeEventListener("abort", cancel);
      forget();
    }
  }

  cancel(callId: string): Promise<SessionAnswers["tool/cancel"]> {
    return this.#connection.call("tool/cancel", { turnId: this.turnId, callId });
  }

  /** Judged as a hop of a model; `back` is where it came from. */
  async hop(
    to: string,
    reason: string,
    more: Pick<SessionParams["envelope/hop"], "carry" | "outcome"> & { readonly callId?: string } = {},
  ): Promise<SessionAnswers["envelope/hop"]> {
    const { callId = crypto.randomUUID(), ...given } = more;
    const { turnId, envelopeHash } = this;
    const asked = { turnId, callId, to, reason, ...given, envelopeHash };
    const hopped = await this.#connection.call("envelope/hop", asked);
    this.#surface = hopped;
    return hopped;
  }

  /** After the calls that were made before. Again is no mistake. */
  leave(outcome?: unknown): Promise<SessionAnswers["envelope/leave"]> {
    return this.#connection.call("envelope/leave", {
      turnId: this.turnId,
      ...(outcome === undefined ? {} : { outcome }),
    });
  }
}

function gone(): HeddleApiError {
  return new HeddleApiError("server.unreachable", "the connection to the server has ended");
}

/** Transient where the server was busy; everything else is this request's fault. */
function refusalOf({ code, message, data = {} }: NonNullable<Message["error"]>): HeddleApiError {
  const { code: name, ...details } = data;
  const status = code === -32001 ? 503 : 400;
  return new HeddleApiError(typeof name === "string" ? name : `rpc.${code}`, message, { status, details });
}
