/**
 * The server: an engine, the threads that are loaded, and connections over any transport. A run belongs to it, never to a
 * connection. When it stops, running turns get their end and their followers hear of it.
 */
import { openTurnQueue, type Heddle, type TurnQueue } from "@heddle/agent";
import type { CodexNotification } from "@heddle/dialects/codex-app-server";
import type { ServerContext } from "./rpc/call.ts";
import type { Channel } from "./rpc/channel.ts";
import { ChatDoor } from "./chat/door.ts";
import { chooseDialect } from "./rpc/choose-dialect.ts";
import { requireCodexOwner } from "./access/codex-owner.ts";
import { Connection } from "./rpc/connection.ts";
import { openGoalTurns, type GoalTurns } from "./turns/goal-turns.ts";
import { contextWindowOf } from "./codex/handlers/models.ts";
import type { Host } from "./host/host.ts";
import { nextSettings } from "./codex/next-settings.ts";
import { LoadedThreads } from "./codex/loaded.ts";
import { callMethod } from "./codex/methods.ts";
import { Peer } from "./rpc/peer.ts";
import { authorOf, LOCAL_OWNER, type Principal } from "./access/principals.ts";
import { RunningTurns } from "./turns/running-turns.ts";
import type { SettingsSource } from "./codex/settings.ts";
import { watchLoop } from "./watchdog.ts";

export interface ServerOptions {
  /** Opened by the caller, attended: clients can be asked. The caller closes it after the server. */
  readonly heddle: Heddle;
  readonly settings: SettingsSource;
  readonly home: string;
  readonly cwd: string;
  readonly version: string;
  /** Absent: clients get no part of the configuration and no accounts, and commands an empty environment. */
  readonly host?: Host;
  /** What is wrong with the configuration; every client is told. */
  readonly configWarnings?: readonly string[];
  readonly log: (line: string) => void;
}

/** A turn that was told to stop ends within six seconds; its followers get a moment more to hear of it. */
const TURNS_END_MS = 6_500;
const FLUSH_MS = 1_000;
const LOOK_MS = 10;

export class AppServer implements AsyncDisposable {
  readonly #options: ServerOptions;
  readonly #context: ServerContext;
  readonly #connections = new Set<Connection>();
  /** Turns of the chat dialect and of the queue. */
  readonly #turns: RunningTurns;
  readonly #queue: TurnQueue;
  readonly #goals: GoalTurns;
  readonly #watchdog: Disposable;
  readonly #chat: ChatDoor;
  /** Connections that are gone and whose commands are not yet. */
  readonly #leaving = new Set<Promise<void>>();
  #nextRequestId = 0;
  #isStopping = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    const announce = (notification: CodexNotification): void => {
      for (const connection of this.#connections) connection.notify(notification);
    };
    const threads = new LoadedThreads({
      heddle: options.heddle,
      announce,
      nextRequestId: () => this.#nextRequestId++,
      contextWindow: contextWindowOf,
      log: options.log,
    });
    const { heddle, log } = options;
    this.#watchdog = watchLoop({ log });
    this.#turns = new RunningTurns(heddle);
    this.#queue = openTurnQueue({
      heddle: { journal: heddle.journal, as: (by) => ({ startTurn: (start) => this.#turns.startTurn(start, by) }) },
      log,
    });
    this.#goals = openGoalTurns({ heddle, threads, next: (thread) => nextSettings(options, thread), log });
    const { host = { env: {} }, configWarnings = [] } = options;
    this.#context = { ...options, threads, announce, host, configWarnings, queue: this.#queue, goals: this.#goals };
    this.#chat = new ChatDoor({
      ...options,
      turns: this.#turns,
      queue: this.#queue,
      accounts: options.host?.accounts,
      skills: options.host?.skills,
    });
    this.#queue.resume().catch((error: unknown) => log(`input that waits could not be looked for: ${String(error)}`));
  }

  /** What is asked for could be stored. */
  async isReady(): Promise<boolean> {
    return (await this.#options.heddle.journal.refusal()) === undefined;
  }

  /** Serves one client; resolves when it has gone. */
  accept(channel: Channel, principal: Principal = LOCAL_OWNER): Promise<void> {
    const gone = Promise.withResolvers<void>();
    const context = this.#context;
    const dialect = chooseDialect({
      codex: () => ({
        async request(method, params, requestId) {
          requireCodexOwner(principal);
          return callMethod(method, params, { server: context, connection, requestId });
        },
        closed: () => undefined,
      }),
      chat: () => this.#chat.open(peer, principal),
    });
    const peer: Peer = new Peer(channel, {
      request: (method, params, id) => dialect.request(method, params, id),
      drained: () => dialect.drained(),
      // `initialized` is the only one there is, and nothing waits for it.
      notification: () => undefined,
      closed: () => {
        dialect.closed();
        this.#connections.delete(connection);
        this.#context.threads.leaveAll(connection);
        this.#endAll(connection);
        gone.resolve();
      },
      log: this.#options.log,
    });
    const connection: Connection = new Connection(peer, authorOf(principal));
    if (this.#isStopping) connection.close();
    else this.#connections.add(connection);
    return gone.promise;
  }

  /** Ends the turns this server runs, tells their followers, and lets go of everyone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    await this.#queue[Symbol.asyncDispose]();
    const chatting = this.#turns.end(TURNS_END_MS);
    const goalsLeft = this.#goals[Symbol.asyncDispose]();
    const { heddle } = this.#options;
    const { threads } = this.#context;
    const running = threads.openFeeds.filter(({ activeTurnId }) => activeTurnId !== undefined);
    const reason = { code: "turn.interrupted", message: "the server is stopping" } as const;
    const ends = running.map(async ({ activeTurnId = "", turnEnded }) => {
      const became = await heddle.letGo(activeTurnId, reason);
      // What waits for an answer, or runs elsewhere, does not end with this server.
      if (became === "ending") await turnEnded;
    });
    await Promise.race([Promise.allSettled(ends), pause(TURNS_END_MS)]);
    await chatting;
    await goalsLeft;
    await this.#chat.caughtUp();
    await this.#flush();
    const connections = [...this.#connections];
    for (const connection of connections) connection.close();
    await Promise.allSettled([...this.#leaving, ...connections.map(({ ends }) => ends[Symbol.asyncDispose]())]);
    for (const { threadId, isEphemeral } of threads.all) {
      if (isEphemeral) await this.#forget(threadId);
    }
    await threads[Symbol.asyncDispose]();
    await this.#chat[Symbol.asyncDispose]();
    this.#watchdog[Symbol.dispose]();
  }

  #endAll({ ends }: Connection): void {
    const ending = ends[Symbol.asyncDispose]().finally(() => this.#leaving.delete(ending));
    this.#leaving.add(ending);
  }

  async #forget(threadId: string): Promise<void> {
    try {
      await this.#options.heddle.as("system").deleteThread({ threadId, reason: "ephemeral" });
    } catch (error) {
      this.#options.log(`the ephemeral thread ${threadId} could not be deleted: ${String(error)}`);
    }
  }

  async #flush(): Promise<void> {
    const until = performance.now() + FLUSH_MS;
    while (performance.now() < until && [...this.#connections].some(({ isIdle }) => !isIdle)) await pause(LOOK_MS);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
