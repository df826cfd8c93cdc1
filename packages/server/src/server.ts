/**
 * The server: an engine, the threads that are loaded, and connections over any transport. A run belongs to it, never to a
 * connection. When it stops, running turns get their end and their followers hear of it.
 */
import {
  MessageTurns,
  openGoalTurns,
  openTurnQueue,
  type GoalTurns,
  type Heddle,
  type StartTurn,
  type TurnHandle,
  type TurnQueue,
} from "@heddle/agent";
import { reasonOf, type Author } from "@heddle/protocol";
import type { CodexNotification } from "@heddle/dialects/codex-app-server";
import type { ServerContext } from "./rpc/call.ts";
import type { Channel } from "./rpc/channel.ts";
import { ChatDoor } from "./chat/door.ts";
import { chooseDialect, type Dialect } from "./rpc/choose-dialect.ts";
import { Connection } from "./rpc/connection.ts";
import { contextWindowOf } from "./codex/handlers/models.ts";
import type { Host } from "./host/host.ts";
import { nextSettings, type SettingsSource } from "./codex/settings.ts";
import { FanOut } from "./followers/fan-out.ts";
import { ThreadNews } from "./codex/thread-news.ts";
import { LoadedThreads } from "./codex/loaded.ts";
import { callMethod } from "./codex/methods.ts";
import { requireScope } from "./codex/own/methods.ts";
import { Sessions } from "./codex/own/sessions.ts";
import { Peer } from "./rpc/peer.ts";
import { isOwner } from "./access/full-access.ts";
import { LOCAL_OWNER, type Principal } from "./access/principals.ts";
import { RunningTurns } from "./turns/running-turns.ts";
import { watchLoop } from "./watchdog.ts";

export interface ServerOptions {
  /** Opened by the caller, attended: clients can be asked. The caller closes it after the server. */
  readonly heddle: Heddle;
  readonly settings: SettingsSource;
  readonly home: string;
  readonly cwd: string;
  readonly version: string;
  readonly originator?: ServerContext["originator"];
  /** Absent: clients get no part of the configuration and no accounts, and commands an empty environment. */
  readonly host?: Host;
  /** Problems of the configuration, sent to every client. */
  readonly configWarnings?: readonly string[];
  readonly log: (line: string) => void;
}

/** A dialect for a client that speaks no other, whatever its first request is. */
export type OpenDialect = (on: {
  readonly peer: Peer;
  readonly principal: Principal;
  readonly server: ServerContext;
}) => Dialect;

/** How long followers have to read the ends of turns. */
const FLUSH_MS = 1_000;
const LOOK_MS = 10;

export class AppServer implements AsyncDisposable {
  readonly #options: ServerOptions;
  readonly #context: ServerContext;
  readonly #connections = new Set<Connection>();
  readonly turns: RunningTurns;
  readonly #queue: TurnQueue;
  readonly #goals: GoalTurns;
  readonly #messages: MessageTurns;
  readonly #watchdog: Disposable;
  readonly #chat: ChatDoor;
  /** Closed connections whose commands have not ended yet. */
  readonly #leaving = new Set<Promise<void>>();
  /** Opened for the first client. */
  #fanOut: Promise<FanOut> | undefined;
  #nextRequestId = 0;
  #isStopping = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    const announce = (notification: CodexNotification): void => {
      // What happens at this server is for its owner; others hear of their sessions.
      for (const connection of this.#connections) if (isOwner(connection.principal)) connection.tell(notification);
    };
    const fanOut = (): Promise<FanOut> => (this.#fanOut ??= this.#openFanOut());
    const threads = new LoadedThreads({
      heddle: options.heddle,
      fanOut,
      announce,
      nextRequestId: () => this.#nextRequestId++,
      contextWindow: contextWindowOf,
      log: options.log,
    });
    const { heddle, log } = options;
    this.#watchdog = watchLoop({ log });
    const turns = new RunningTurns(heddle);
    this.turns = turns;
    const startTurn = (start: StartTurn, by: Author): Promise<TurnHandle> =>
      turns.begin(() => heddle.as(by).startTurn(start));
    this.#queue = openTurnQueue({
      heddle: { journal: heddle.journal, as: (by) => ({ startTurn: (start) => startTurn(start, by) }) },
      log,
    });
    this.#goals = openGoalTurns({
      heddle,
      async next(threadId) {
        const loaded = threads.get(threadId);
        return loaded && { workspace: loaded.workspace, settings: await nextSettings(options, loaded) };
      },
      log,
    });
    this.#messages = new MessageTurns({ heddle, log, onStart: (handle) => void turns.add(handle) });
    this.#messages.follow();
    const { host = { env: {} }, configWarnings = [] } = options;
    const [queue, goals] = [this.#queue, this.#goals];
    const sessions = new Sessions(heddle);
    const known = { ...options, threads, announce, host, configWarnings, queue, goals, turns, sessions, fanOut };
    this.#context = { ...known, news: new ThreadNews(() => this.#context) };
    this.#chat = new ChatDoor({
      ...options,
      fanOut,
      turns,
      queue,
      accounts: options.host?.accounts,
      skills: options.host?.skills,
    });
    this.#queue.resume().catch((error: unknown) => log(`queued input could not be read: ${reasonOf(error)}`));
  }

  /** What is asked for could be stored. */
  async isReady(): Promise<boolean> {
    return (await this.#options.heddle.journal.refusal()) === undefined;
  }

  /** Serves one client; resolves when it has disconnected. `open`: the one dialect that is spoken there. */
  accept(channel: Channel, principal: Principal = LOCAL_OWNER, open?: OpenDialect): Promise<void> {
    const gone = Promise.withResolvers<void>();
    const context = this.#context;
    const choose = (): Dialect =>
      chooseDialect({
        codex: () => ({
          async request(method, params, requestId) {
            requireScope(principal, method);
            // Without the fan-out nothing could be announced.
            await context.fanOut();
            return callMethod(method, params, { server: context, connection, requestId });
          },
          closed: () => undefined,
        }),
        chat: () => this.#chat.open(peer, principal),
      });
    let dialect: Dialect | undefined;
    const peer: Peer = new Peer(channel, {
      request: (method, params, id) => spoken().request(method, params, id),
      drained: () => dialect?.drained?.(),
      left: () => {
        dialect?.left?.();
        this.#endAll(connection);
      },
      notification: (method, params) => spoken().notification?.(method, params),
      closed: () => {
        dialect?.closed();
        this.#connections.delete(connection);
        this.#context.threads.leaveAll(connection);
        this.#endAll(connection);
        gone.resolve();
      },
      log: this.#options.log,
    });
    const spoken = (): Dialect => (dialect ??= open?.({ peer, principal, server: context }) ?? choose());
    const connection: Connection = new Connection(peer, principal);
    if (open !== undefined) spoken();
    if (this.#isStopping) connection.close();
    else this.#connections.add(connection);
    return gone.promise;
  }

  /**
   * Begins nothing new. Resolves when nothing runs any more but what only waits for an answer, which the next server
   * carries on with, or when the signal aborts.
   */
  async drain(signal: AbortSignal): Promise<void> {
    const queues = [this.#queue, this.#goals, this.#messages].map((queue) => queue[Symbol.asyncDispose]());
    await this.turns.drain(signal);
    const overdue = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([Promise.allSettled(queues), overdue]);
  }

  /** Ends the turns of this server, sends their ends to followers, and disconnects everyone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    await this.#queue[Symbol.asyncDispose]();
    const messages = this.#messages[Symbol.asyncDispose]();
    const { threads } = this.#context;
    // Also those that an answer has woken, and what others run in this process.
    for (const { activeTurnId: turnId, turnEnded: done } of threads.openFeeds) {
      if (turnId !== undefined) this.turns.add({ turnId, done });
    }
    await Promise.all([this.turns.end(), this.#goals[Symbol.asyncDispose](), messages]);
    await (await this.#fanOut)?.caughtUp();
    await this.#flush();
    const connections = [...this.#connections];
    for (const connection of connections) connection.close();
    await Promise.allSettled([...this.#leaving, ...connections.map(({ ends }) => ends[Symbol.asyncDispose]())]);
    for (const { threadId, isEphemeral } of threads.all) {
      if (isEphemeral) await this.#forget(threadId);
    }
    await threads[Symbol.asyncDispose]();
    this.#chat[Symbol.dispose]();
    await (await this.#fanOut)?.[Symbol.asyncDispose]();
    this.#watchdog[Symbol.dispose]();
  }

  async #openFanOut(): Promise<FanOut> {
    const { heddle, log } = this.#options;
    const fanOut = await FanOut.open({ heddle, log });
    fanOut.listen(this.#context.news);
    return fanOut;
  }

  #endAll({ ends }: Connection): void {
    const ending = ends[Symbol.asyncDispose]().finally(() => this.#leaving.delete(ending));
    this.#leaving.add(ending);
  }

  async #forget(threadId: string): Promise<void> {
    try {
      await this.#options.heddle.as("system").deleteThread({ threadId, reason: "ephemeral" });
    } catch (error) {
      this.#options.log(`the ephemeral thread ${threadId} could not be deleted: ${reasonOf(error)}`);
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
