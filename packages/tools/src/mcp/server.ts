/**
 * One server in one thread. It is started when its thread or a turn begins, listed again when it reports changed tools, and started again
 * when a call finds it lost: after growing pauses, a limited number of times.
 *
 *   idle ─▶ starting ─▶ up ─(ends, faults)─▶ down ─(next call or turn)─▶ starting
 *                └─(cannot start)─▶ down          down ─(too often)─▶ stays down
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { CallToolResult } from "@modelcontextprotocol/client";
import { isHeddleError, type McpServerConfig, type McpState } from "@heddle/protocol";
import { startCallClock, type CallClock } from "./call-clock.ts";
import { connectMcp, type CallOptions, type Elicitation, type Elicited, type McpConnection } from "./connection.ts";
import { readDefinitions, type ToolDefinition } from "./definitions.ts";
import { mcpError, messageOf } from "./failure.ts";
import type { ServerTransport } from "./stdio-transport.ts";

/** Pauses before the first, second, … start after the server was lost. */
const RESTART_PAUSES_MS = [100, 300, 1000, 3000] as const;
const SIGN_OF_LIFE_MS = 5000;
/** A call that reports progress may take so many times its limit. */
const PROGRESS_FACTOR = 10;

export interface ServerOptions {
  readonly config: McpServerConfig;
  readonly workspace: string;
  readonly openTransport: () => Promise<ServerTransport>;
  /** A user can answer the server's questions. */
  readonly mayElicit?: boolean;
  readonly onState?: ((state: McpState) => void) | undefined;
}

export type ServerNews =
  | { readonly kind: "listed"; readonly protocolVersion: string; readonly changed: readonly string[] }
  | { readonly kind: "failed"; readonly message: string };

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "starting"; readonly ready: Promise<McpConnection> }
  | { readonly kind: "up"; readonly connection: McpConnection }
  | { readonly kind: "down"; readonly cause: string };

export interface CallRequest {
  readonly tool: ToolDefinition;
  readonly arguments: Record<string, unknown>;
  readonly meta?: CallOptions["meta"];
  readonly signal: AbortSignal;
  readonly onProgress: (message: string) => void;
  /** Asks a person on the server's behalf. */
  readonly onElicit: (wanted: Elicitation) => Promise<Elicited>;
}

/** A call that is under way. */
interface Underway {
  readonly clock: CallClock;
  readonly onElicit: CallRequest["onElicit"];
}

export class McpServer implements AsyncDisposable {
  readonly config: McpServerConfig;
  readonly #options: ServerOptions;
  readonly #closing = new AbortController();
  #state: State = { kind: "idle" };
  #losses = 0;
  #isStale = false;
  /** A call got no answer: the server may be stuck, and is asked for a sign of life before the next. */
  #isDoubtful = false;
  #tools: readonly ToolDefinition[] = [];
  #leftOut: readonly string[] = [];
  #news: ServerNews[] = [];
  /** A start that no turn knows of yet. */
  #ahead: Promise<"up" | "down" | "without login"> | undefined;
  #told: McpState | undefined;
  readonly #underway = new Set<Underway>();

  constructor(options: ServerOptions) {
    this.config = options.config;
    this.#options = options;
  }

  get tools(): readonly ToolDefinition[] {
    return this.#tools;
  }

  /** Entries of its list that are no tools. */
  get leftOut(): readonly string[] {
    return this.#leftOut;
  }

  /** Lost too often; its tools are not offered any more in this thread. */
  get isGivenUp(): boolean {
    return this.#losses > RESTART_PAUSES_MS.length;
  }

  /** What happened since it was asked last. */
  takeNews(): readonly ServerNews[] {
    const news = this.#news;
    this.#news = [];
    return news;
  }

  /** Longer than any call can take, its start included. */
  get longestCallMs(): number {
    const { toolTimeoutMs, startupTimeoutMs } = this.config;
    return toolTimeoutMs * PROGRESS_FACTOR + startupTimeoutMs + Math.max(...RESTART_PAUSES_MS);
  }

  /** undefined: it was never started. */
  get state(): McpState | undefined {
    return this.#told;
  }

  /** Starts it outside any turn; the next turn is told what came of it. */
  async startAhead(): Promise<void> {
    this.#ahead ??= this.#connected(this.#closing.signal).then(
      () => "up",
      (error: unknown) => (needsLogin(error) ? "without login" : "down"),
    );
    await this.#ahead;
  }

  /** Starts it unless it runs; a failure becomes news. Bounded by its start-up time. */
  async start(signal: AbortSignal): Promise<void> {
    const end = this.#ahead && (await unlessAborted(this.#ahead, signal));
    if (signal.aborted) return;
    this.#ahead = undefined;
    // What has just failed is reported before it is tried again; somebody may have logged in since.
    if (end === "down") return;
    if (end === "without login") this.#news = [];
    if (this.#state.kind === "up" || this.isGivenUp) return;
    await this.#connected(signal).catch(() => undefined);
  }

  /** Lists again after the server has reported a change. */
  async refresh(signal: AbortSignal): Promise<void> {
    if (this.#state.kind !== "up" || !this.#isStale) return;
    const { connection } = this.#state;
    try {
      await this.#list(connection, signal);
    } catch (error) {
      if (signal.aborted) return;
      await this.#lose(connection, messageOf(error));
    }
  }

  async call({ tool, signal, onProgress, onElicit, ...request }: CallRequest): Promise<CallToolResult> {
    const connection = await this.#alive(signal);
    const current = this.#tools.find(({ name }) => name === tool.name);
    if (current?.hash !== tool.hash) {
      throw mcpError(`the server ${this.config.name} has changed what this tool is; it was not called`);
    }
    const { toolTimeoutMs } = this.config;
    using clock = startCallClock({ timeoutMs: toolTimeoutMs, maxTotalMs: toolTimeoutMs * PROGRESS_FACTOR });
    const underway = { clock, onElicit };
    this.#underway.add(underway);
    try {
      const { name, parameters } = tool;
      return await connection.call({ ...request, name, parameters, signal, onProgress, clock });
    } catch (error) {
      if (signal.aborted) throw error;
      if (isTimeout(error)) this.#isDoubtful = true;
      if (isForgottenSession(error)) await this.#lose(connection, "the server has forgotten the session");
      // When the server went down under the call, that is the reason, whatever the request reports.
      const state = this.#current();
      throw mcpError(state.kind === "down" ? state.cause : messageOf(error), error);
    } finally {
      this.#underway.delete(underway);
    }
  }

  /** The server does not say which of its calls asks; the newest is the likeliest. */
  async #elicit(wanted: Elicitation): Promise<Elicited> {
    const underway = [...this.#underway].at(-1);
    if (underway === undefined) return { action: "cancel" };
    using _pause = underway.clock.pause();
    return await underway.onElicit(wanted);
  }

  /** For requests to the server itself. Bounded by its start-up time. */
  connection(signal: AbortSignal): Promise<McpConnection> {
    return this.#alive(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(mcpError("the thread is closed"));
    const state = this.#state;
    this.#state = { kind: "down", cause: "the thread is closed" };
    this.#losses = Infinity;
    if (state.kind === "up") await state.connection.close();
    if (state.kind === "starting")
      await state.ready.then(
        (connection) => connection.close(),
        () => undefined,
      );
  }

  /** The state may have changed while something was awaited; the compiler cannot know. */
  #current(): State {
    return this.#state;
  }

  async #alive(signal: AbortSignal): Promise<McpConnection> {
    const connection = await this.#connectedAgain(signal);
    if (!this.#isDoubtful) return connection;
    this.#isDoubtful = false;
    try {
      await this.#list(connection, AbortSignal.any([signal, AbortSignal.timeout(SIGN_OF_LIFE_MS)]));
      return connection;
    } catch (error) {
      signal.throwIfAborted();
      await this.#lose(connection, `the server did not respond: ${messageOf(error)}`);
      return this.#connectedAgain(signal);
    }
  }

  async #connectedAgain(signal: AbortSignal): Promise<McpConnection> {
    const state = this.#state;
    if (state.kind === "up") return state.connection;
    if (state.kind === "starting") return state.ready;
    if (this.isGivenUp) {
      const cause = state.kind === "down" ? `: ${state.cause}` : "";
      throw mcpError(`the server ${this.config.name} was lost ${this.#losses} times and is not started again${cause}`);
    }
    const pause = RESTART_PAUSES_MS[this.#losses - 1] ?? 0;
    await sleep(pause, undefined, { signal: AbortSignal.any([signal, this.#closing.signal]) });
    return this.#connected(signal);
  }

  #connected(signal: AbortSignal): Promise<McpConnection> {
    const state = this.#state;
    if (state.kind === "up") return Promise.resolve(state.connection);
    if (state.kind === "starting") return state.ready;
    const ready = this.#connect(signal);
    this.#state = { kind: "starting", ready };
    this.#tell({ server: this.config.name, status: "starting" });
    return ready;
  }

  async #connect(turn: AbortSignal): Promise<McpConnection> {
    const { config, workspace, openTransport } = this.#options;
    const timeoutMs = config.startupTimeoutMs;
    const deadline = AbortSignal.timeout(timeoutMs);
    const signal = AbortSignal.any([turn, this.#closing.signal]);
    let connection: McpConnection | undefined;
    try {
      connection = await connectMcp({
        openTransport,
        workspace,
        timeoutMs,
        signal,
        onListChanged: () => {
          this.#isStale = true;
        },
        onElicit: this.#options.mayElicit === true ? (wanted) => this.#elicit(wanted) : undefined,
        onLost: (cause) => {
          this.#lost(cause);
        },
      });
      await this.#list(connection, AbortSignal.any([signal, deadline]));
      signal.throwIfAborted();
      this.#state = { kind: "up", connection };
      this.#tell({ server: config.name, status: "ready" });
      return connection;
    } catch (error) {
      await connection?.close();
      if (signal.aborted) {
        // Stopped with the turn: nothing is known about the server.
        this.#state = { kind: "idle" };
        this.#tell({ server: config.name, status: "cancelled" });
        throw error;
      }
      const isLate = deadline.aborted && !isHeddleError(error);
      const message = isLate ? `the server did not list its tools in ${timeoutMs} ms` : messageOf(error);
      this.#lost(message);
      // The user may log in at any time, so these failures do not count.
      if (needsLogin(error)) this.#losses -= 1;
      throw mcpError(message, error);
    }
  }

  /** Reads the whole list, and reports which known tools have changed. */
  async #list(connection: McpConnection, signal: AbortSignal): Promise<void> {
    this.#isStale = false;
    const timeoutMs = Math.min(this.config.toolTimeoutMs, this.config.startupTimeoutMs);
    const { tools, leftOut } = readDefinitions(await connection.list({ timeoutMs, signal }));
    const before = new Map(this.#tools.map(({ name, hash }) => [name, hash]));
    const isFirst = before.size === 0;
    const changed = tools.flatMap(({ name, hash }) => (before.has(name) && before.get(name) !== hash ? [name] : []));
    this.#tools = tools;
    this.#leftOut = leftOut;
    const isSame = !isFirst && changed.length === 0 && tools.length === before.size;
    const hasSameNames = isSame && tools.every(({ name }) => before.has(name));
    if (!hasSameNames) this.#news.push({ kind: "listed", protocolVersion: connection.protocolVersion, changed });
  }

  async #lose(connection: McpConnection, cause: string): Promise<void> {
    this.#lost(cause);
    await connection.close();
  }

  #lost(cause: string): void {
    if (this.#closing.signal.aborted || this.#state.kind === "down") return;
    this.#state = { kind: "down", cause };
    this.#losses += 1;
    this.#news.push({ kind: "failed", message: cause });
    this.#tell({ server: this.config.name, status: "failed", error: cause });
  }

  #tell(state: McpState): void {
    this.#told = state;
    this.#options.onState?.(state);
  }
}

/** undefined: aborted before. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  using listening = new DisposableStack();
  const aborted = new Promise<undefined>((resolve) => {
    const stop = (): void => resolve(undefined);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    listening.defer(() => signal.removeEventListener("abort", stop));
  });
  return await Promise.race([work, aborted]);
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "REQUEST_TIMEOUT";
}

/** A server of the session era answers 404 when it was restarted; a new session is needed then. */
function isForgottenSession(error: unknown): boolean {
  return error instanceof Error && "status" in error && error.status === 404;
}

function needsLogin(error: unknown): boolean {
  if (!isHeddleError(error)) return false;
  if (error.code === "mcp.failed") return needsLogin(error.cause);
  return error.code === "auth.missing" || error.code === "auth.rejected";
}
