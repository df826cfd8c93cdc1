/**
 * The server: an engine, the threads that are loaded, and connections over any transport. A run belongs to it, never to a
 * connection. When it stops, running turns get their end and their followers hear of it.
 */
import {
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
import { chooseDialect } from "./rpc/choose-dialect.ts";
import { Connection } from "./rpc/connection.ts";
import { contextWindowOf } from "./codex/handlers/models.ts";
import type { Host } from "./host/host.ts";
import { nextSettings, type SettingsSource } from "./codex/settings.ts";
import { FanOut } from "./followers/fan-out.ts";
import { ThreadNews } from "./codex/thread-news.ts";
import { LoadedThreads } from "./codex/loaded.ts";
import { callMethod } from "./codex/methods.ts";
import { Peer, RPC, RpcError } from "./rpc/peer.ts";
import { authorOf, LOCAL_OWNER, scopeAllows, type Principal } from "./access/principals.ts";
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
      for (const connection of this.#connections) connection.tell(notification);
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
    const startTurn = async (start: StartTurn, by: Author): Promise<TurnHandle> =>
      turns.add(await heddle.as(by).startTurn(start));
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
    const { host = { env: {} }, configWarnings = [] } = options;
    const [queue, goals] = [this.#queue, this.#goals];
    const known = { ...options, threads, announce, host, configWarnings, queue, goals, turns, fanOut };
    this.#context = { ...known, news: new ThreadNews(() => this.#context) };
    this.#chat = new ChatDoor({
      ...options,
      fanOut,
      turns,
      queue,
      accounts: options.host?.accounts,
      skills: options.host?.skills,
    });
    this.#queue.resume().catch((error: unknown) => log(`input that waits could not be looked for: ${reasonOf(error)}`));
  }

  /** What is asked for could be stored. */
  async isReady(): Promise<boolean> {
    return (await this.#options.heddle.journal.refusal()) === undefined;
  }

  /** Serves one client; resolves when it has disconnected. */
  accept(channel: Channel, principal: Principal = LOCAL_OWNER): Promise<void> {
    const gone = Promise.withResolvers<void>();
    const context = this.#context;
    const dialect = chooseDialect({
      codex: () => ({
        async request(method, params, requestId) {
          requireCodexOwner(principal);
          // Without the fan-out nothing could be announced.
          await context.fanOut();
          return callMethod(method, params, { server: context, connection, requestId });
        },
        closed: () => undefined,
      }),
      chat: () => this.#chat.open(peer, principal),
    });
    const peer: Peer = new Peer(channel, {
      request: (method, params, id) => dialect.request(method, params, id),
      drained: () => dialect.drained(),
      // `initialized` is the only notification of clients, and nothing depends on it.
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

  /** Ends the turns of this server, sends their ends to followers, and disconnects everyone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true;
    await this.#queue[Symbol.asyncDispose]();
    const { threads } = this.#context;
    // Also those that an answer has woken, and what others run in this process.
    for (const { activeTurnId: turnId, turnEnded: done } of threads.openFeeds) {
      if (turnId !== undefined) this.turns.add({ turnId, done });
    }
    await Promise.all([this.turns.end(), this.#goals[Symbol.asyncDispose]()]);
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

/**
 * Methods of Codex reach files, commands, configuration and accounts, and know no roles: only the owner may call them. Others
 * have the chat dialect and HTTP, where every method has a scope.
 */
function requireCodexOwner({ role }: Principal): void {
  if (scopeAllows(role, "admin")) return;
  throw new RpcError(
    RPC.invalidRequest,
    `methods of codex app-server are only for the owner; a ${role} may use chat.* or HTTP`,
    { code: "door.forbidden", role },
  );
}
