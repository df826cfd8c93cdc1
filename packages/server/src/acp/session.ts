/**
 * One session of a client: a thread that it follows. Stored events become updates in their order, questions become requests,
 * and the end of a turn is the answer to its prompt. It holds nothing that it could not read again.
 *
 *   fan-out ─▶ dialect ─┬─▶ updates, requests ─▶ client
 *                       └─▶ ends of turns     ─▶ prompts that wait
 */
import {
  AcpSessionDialect,
  configOptions,
  type AcpChoices,
  type AcpEnd,
  type AcpOutgoing,
  type AcpUpdate,
} from "@heddle/dialects/acp";
import { HeddleError, reasonOf, type StoredEvent } from "@heddle/protocol";
import { contextWindowOf } from "../codex/handlers/models.ts";
import { openTurn } from "../codex/handlers/turns.ts";
import type { FanOut } from "../followers/fan-out.ts";
import { pastTurns, turnEvents } from "../turns/past-turns.ts";
import type { AcpConnection } from "./connection.ts";
import { readChoices } from "./choices.ts";
import { AcpQuestions } from "./questions.ts";

export interface AcpSessionOptions {
  readonly connection: AcpConnection;
  readonly threadId: string;
  readonly workspace: string;
}

/** Ends that nobody has asked for yet: a turn may be over before its prompt has been told its id. */
const MAX_ENDS = 50;
const MAX_OWN = 1_000;
/** An interrupted turn ends within six seconds. */
const IDLE_MS = 6_500;
const INTERRUPTED = { code: "turn.interrupted", message: "interrupted by the client" } as const;

export class AcpSession implements Disposable {
  readonly threadId: string;
  readonly workspace: string;
  readonly #connection: AcpConnection;
  readonly #fanOut: FanOut;
  readonly #dialect: AcpSessionDialect;
  readonly #questions: AcpQuestions;
  readonly #listening = new DisposableStack();
  readonly #own = new Set<string>();
  readonly #ends = new Map<string, AcpEnd>();
  readonly #waiting = new Map<string, Set<{ resolve(end: AcpEnd): void; reject(error: Error): void }>>();
  readonly #cancels = new Set<() => void>();
  /** What comes while the past is read, or before the answer that opens the session. */
  #unread: StoredEvent[] | undefined = [];
  #seen = 0;
  /** Of what the client was sent last. */
  #shownMode: string | undefined;
  #shownOptions: string | undefined;
  #isRefreshing = false;
  #isStale = false;
  #isClosed = false;

  private constructor({ connection, threadId, workspace }: AcpSessionOptions, fanOut: FanOut) {
    const { client } = connection;
    if (client === undefined) throw new Error("a session needs a client");
    this.#connection = connection;
    this.#fanOut = fanOut;
    this.threadId = threadId;
    this.workspace = workspace;
    this.#questions = new AcpQuestions({ connection, client, threadId });
    this.#dialect = new AcpSessionDialect({
      client,
      isOwn: (clientId) => this.#own.has(clientId),
      contextWindow: contextWindowOf,
    });
  }

  /** Follows from here on; `release` sends what has come since. */
  static async open(options: AcpSessionOptions): Promise<AcpSession> {
    const fanOut = await options.connection.server.fanOut();
    const session = new AcpSession(options, fanOut);
    session.#listening.use(
      fanOut.listen(
        {
          event: (event) => session.#take(event),
          delta: (delta) => {
            const isBehind = session.#unread !== undefined || session.#connection.isBehind;
            session.#deliverAll(session.#dialect.delta(delta, isBehind));
          },
          deltaLost: () => session.#dialect.lost(),
        },
        session.threadId,
      ),
    );
    return session;
  }

  /** Reads the past: all of it is sent, or only what is still open counts. */
  async read({ isSent }: { readonly isSent: boolean }): Promise<void> {
    const { journal } = this.#connection.server.heddle;
    this.#seen = await journal.version(this.threadId);
    const past = await pastTurns(journal, this.threadId, this.#seen);
    const last = await openTurn(this.#connection.server, this.threadId);
    for (const turn of past) {
      if (!isSent && turn.id !== last) continue;
      for (const event of await turnEvents(journal, turn)) {
        const outgoing = this.#dialect.event(event);
        this.#deliverAll(outgoing.filter((out) => isPast(out, isSent)));
      }
      await this.#connection.room();
    }
  }

  /** The client has been told of the session. */
  release(): void {
    const unread = this.#unread ?? [];
    this.#unread = undefined;
    this.#questions.release();
    for (const event of unread) this.#take(event);
  }

  /** Input under this id is not shown to the client again. */
  owns(clientId: string): void {
    this.#own.add(clientId);
    const [oldest] = this.#own;
    if (this.#own.size > MAX_OWN && oldest !== undefined) this.#own.delete(oldest);
  }

  send(update: AcpUpdate): void {
    if (this.#isClosed) return;
    if (update.sessionUpdate === "current_mode_update") {
      if (update["currentModeId"] === this.#shownMode) return;
      this.#shownMode = String(update["currentModeId"]);
    }
    this.#connection.notify("session/update", { sessionId: this.threadId, update });
  }

  /** Resolves with the end of a turn, after everything that came before it was sent. */
  end(turnId: string): Promise<AcpEnd> {
    const known = this.#ends.get(turnId);
    if (known !== undefined) return Promise.resolve(known);
    if (this.#isClosed) return Promise.reject(closed());
    const { promise, resolve, reject } = Promise.withResolvers<AcpEnd>();
    const waiting = this.#waiting.get(turnId) ?? new Set();
    this.#waiting.set(turnId, waiting.add({ resolve, reject }));
    return promise;
  }

  /** Called when the client cancels, until the work is over. */
  async cancellable<T>(cancelled: () => void, work: () => Promise<T>): Promise<T> {
    this.#cancels.add(cancelled);
    try {
      return await work();
    } finally {
      this.#cancels.delete(cancelled);
    }
  }

  /** Ends what runs in the thread, whoever began it: the client shows it as its own. */
  cancel(): void {
    for (const cancelled of this.#cancels) cancelled();
    const { activeTurnId } = this.#dialect;
    if (activeTurnId !== undefined) this.interrupt(activeTurnId);
  }

  interrupt(turnId: string): void {
    const { server, by } = this.#connection;
    server.heddle
      .as(by)
      .interrupt(turnId, INTERRUPTED)
      .catch((error: unknown) => server.log(`a turn could not be interrupted: ${reasonOf(error)}`));
  }

  /** Resolves when no turn runs in the thread, or it has taken too long. */
  async idle(): Promise<void> {
    const { activeTurnId } = this.#dialect;
    if (activeTurnId === undefined) return;
    const ended = this.end(activeTurnId).catch(() => undefined);
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, IDLE_MS).unref())]);
  }

  /** What the client has just been told in an answer is not sent again. */
  shows({ mode, ...others }: AcpChoices): void {
    this.#shownMode = mode;
    this.#shownOptions = JSON.stringify(configOptions({ mode, ...others }));
  }

  choices(): Promise<AcpChoices> {
    return readChoices(this.#connection.server, this);
  }

  /** What runs for the thread besides its turns rests with it. */
  [Symbol.dispose](): void {
    this.leave();
    this.#connection.server.heddle.mcp.rest(this.threadId);
  }

  /** Another session of the same thread takes its place. */
  leave(): void {
    this.#isClosed = true;
    this.#listening[Symbol.dispose]();
    this.#questions[Symbol.dispose]();
    this.#connection.remove(this);
    for (const waiting of this.#waiting.values()) for (const one of waiting) one.reject(closed());
    this.#waiting.clear();
  }

  #take(event: StoredEvent): void {
    if (this.#unread !== undefined) return void this.#unread.push(event);
    // It was read with the past.
    if (event.version <= this.#seen) return;
    this.#seen = event.version;
    this.#deliverAll(this.#dialect.event(event));
  }

  #deliverAll(outgoing: readonly AcpOutgoing[]): void {
    for (const out of outgoing) this.#deliver(out);
  }

  #deliver(out: AcpOutgoing): void {
    switch (out.kind) {
      case "update":
        return this.send(out.update);
      case "ask":
        return this.#questions.open(out);
      case "resolved":
        return this.#questions.close(out.approvalId);
      case "settings":
        return this.#refresh();
      case "began":
        // Also one that an answer has woken: it ends with the server, or is left for the next one.
        this.#connection.server.turns.add({ turnId: out.turnId, done: this.#turnOver(out.turnId) });
        return;
      case "ended":
        return this.#ended(out.turnId, out.end);
    }
  }

  /** However long the session is open: the server ends what its clients have left. */
  #turnOver(turnId: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const listening = this.#fanOut.listen(
      {
        event({ body }) {
          if (body.type !== "turn.completed" || body.turnId !== turnId) return;
          listening[Symbol.dispose]();
          resolve();
        },
        ended: () => resolve(),
      },
      this.threadId,
    );
    return promise;
  }

  #ended(turnId: string, end: AcpEnd): void {
    this.#ends.set(turnId, end);
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > MAX_ENDS && oldest !== undefined) this.#ends.delete(oldest);
    for (const one of this.#waiting.get(turnId) ?? []) one.resolve(end);
    this.#waiting.delete(turnId);
  }

  /** One at a time; what has changed meanwhile is looked at once more. */
  #refresh(): void {
    this.#isStale = true;
    if (this.#unread !== undefined || this.#isRefreshing) return;
    this.#isRefreshing = true;
    this.#refreshAll()
      .catch((error: unknown) => this.#connection.server.log(`settings could not be sent: ${reasonOf(error)}`))
      .finally(() => (this.#isRefreshing = false));
  }

  async #refreshAll(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      const choices = await this.choices();
      if (this.#isClosed) return;
      // While a turn runs, the envelope is where the turn is, whatever the next one begins in.
      const mode = this.#dialect.activeTurnId === undefined ? choices.mode : (this.#shownMode ?? choices.mode);
      this.send({ sessionUpdate: "current_mode_update", currentModeId: mode });
      const options = configOptions({ ...choices, mode });
      const shown = JSON.stringify(options);
      if (shown === this.#shownOptions) continue;
      this.#shownOptions = shown;
      this.send({ sessionUpdate: "config_option_update", configOptions: options });
    }
  }
}

/** What holds now is told when the session is open; of the past only what was said and done is. */
const OF_NOW: ReadonlySet<string> = new Set(["usage_update", "current_mode_update", "session_info_update"]);

function isPast(out: AcpOutgoing, isSent: boolean): boolean {
  if (out.kind === "update") return isSent && !OF_NOW.has(out.update.sessionUpdate);
  return out.kind !== "settings";
}

function closed(): HeddleError {
  return new HeddleError("turn.interrupted", "the session was closed before the turn ended");
}
