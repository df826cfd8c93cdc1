/**
 * One followed thread for the clients of app-server: what the fan-out hands out is said by the dialect and goes to whoever
 * follows (turns, items, questions, goals, settings) and to everyone (status). The journal stays the truth: a feed holds
 * nothing that it could not read again.
 */
import type { Heddle } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import type { By, ItemDelta, McpState, StoredEvent } from "@heddle/protocol";
import {
  mcpStartup,
  ThreadDialect,
  type CodexNotification,
  type CodexServerRequest,
  type CodexThreadStatus,
  type Outgoing,
} from "@heddle/dialects/codex-app-server";
import type { FanOut } from "./fan-out.ts";
import { callFor, questionFor } from "./follower-requests.ts";
import { readThreadState } from "./thread-state.ts";
import { OpenRequests } from "./open-requests.ts";
import type { Answered, RequestId } from "../rpc/peer.ts";

/** A client that follows a thread. */
export interface Follower extends By {
  tell(notification: CodexNotification): void;
  sendDelta(notification: CodexNotification): void;
  ask(id: RequestId, request: CodexServerRequest, done: (answer: Answered) => void): void;
  withdraw(id: RequestId, threadId: string): void;
}

export interface FeedOptions {
  readonly heddle: Heddle;
  readonly fanOut: () => Promise<FanOut>;
  readonly threadId: string;
  /** The thread has just begun: what happened since is sent too, not read with the past. */
  readonly isNew?: boolean | undefined;
  /** To every connection, whatever it follows. */
  readonly announce: (notification: CodexNotification) => void;
  /** Ids of questions are the server's: several clients are asked under one. */
  readonly nextRequestId: () => number;
  readonly contextWindow: (model: string) => number | undefined;
  readonly log: (line: string) => void;
}

export class ThreadFeed implements AsyncDisposable {
  readonly #options: FeedOptions;
  readonly #dialect: ThreadDialect;
  readonly #followers = new Set<Follower>();
  readonly #requests: OpenRequests;
  readonly #listening = new DisposableStack();
  /** What has come while the past is read. */
  #unread: StoredEvent[] | undefined = [];
  #seen = 0;
  #ended = Promise.withResolvers<void>();

  private constructor(options: FeedOptions) {
    const { threadId, contextWindow } = options;
    this.#options = options;
    this.#dialect = new ThreadDialect({ threadId, contextWindow });
    this.#requests = new OpenRequests({ ...options, followers: this.#followers });
  }

  static async open(options: FeedOptions): Promise<ThreadFeed> {
    const { heddle, threadId } = options;
    const feed = new ThreadFeed(options);
    const fanOut = await options.fanOut();
    const listener = {
      event: (event: StoredEvent) => feed.#take(event),
      delta: (delta: ItemDelta) => feed.#deliverAll(feed.#dialect.delta(delta)),
    };
    feed.#listening.use(fanOut.listen(listener, threadId));
    feed.#listening.use(heddle.mcp.onState(threadId, (state) => feed.#tellStart(state)));
    try {
      await feed.#begin(heddle.journal, threadId);
    } catch (error) {
      await feed[Symbol.asyncDispose]();
      throw error;
    }
    return feed;
  }

  get status(): CodexThreadStatus {
    return this.#dialect.status;
  }

  get activeTurnId(): string | undefined {
    return this.#dialect.activeTurnId;
  }

  /** What the thread has used so far; undefined: nothing. */
  get usage(): CodexNotification | undefined {
    return this.#dialect.usage;
  }

  get followers(): readonly Follower[] {
    return [...this.#followers];
  }

  /** Somebody follows, or a turn runs. */
  get isNeeded(): boolean {
    return this.#followers.size > 0 || this.#dialect.activeTurnId !== undefined;
  }

  /** The last version that was sent to followers. */
  get seen(): number {
    return this.#seen;
  }

  /** Resolves when a turn ends. */
  get turnEnded(): Promise<void> {
    return this.#ended.promise;
  }

  /** Open questions are sent to it at once; to one that follows already, once more. */
  add(follower: Follower): void {
    if (this.#followers.has(follower)) return this.#requests.repeat(follower);
    this.#followers.add(follower);
    this.#requests.joined(follower);
  }

  /** True when it was following. */
  remove(follower: Follower): boolean {
    const wasFollowing = this.#followers.delete(follower);
    this.#requests.left(follower);
    return wasFollowing;
  }

  has(follower: Follower): boolean {
    return this.#followers.has(follower);
  }

  tell(notification: CodexNotification): void {
    for (const follower of this.#followers) follower.tell(notification);
  }

  /** What came of the start of the MCP servers while nobody followed. */
  tellStarts(): void {
    const { heddle, threadId } = this.#options;
    for (const state of heddle.mcp.states(threadId)) {
      if (state.status !== "starting") this.#tellStart({ ...state, status: "starting" });
      this.#tellStart(state);
    }
  }

  /** A server that failed is quoted, and may have printed its token. */
  #tellStart(state: McpState): void {
    const { heddle, threadId } = this.#options;
    const { redactor } = heddle.journal;
    this.tell(
      mcpStartup(threadId, state.status === "failed" ? { ...state, error: redactor.text(state.error) } : state),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listening[Symbol.dispose]();
    this.#requests[Symbol.dispose]();
  }

  /** Of the past only what is still open matters. */
  async #begin(journal: Journal, threadId: string): Promise<void> {
    if (this.#options.isNew !== true) {
      const { version, state, lastTurns } = await readThreadState(journal, threadId);
      for (const out of this.#dialect.restore(state, lastTurns)) this.#ask(out);
      this.#seen = version;
    }
    const unread = this.#unread ?? [];
    this.#unread = undefined;
    for (const event of unread) this.#take(event);
  }

  #take(event: StoredEvent): void {
    if (this.#unread !== undefined) return void this.#unread.push(event);
    // It was read with the past.
    if (event.version <= this.#seen) return;
    this.#seen = event.version;
    this.#deliverAll(this.#dialect.event(event));
    if (event.body.type !== "turn.completed") return;
    this.#ended.resolve();
    this.#ended = Promise.withResolvers<void>();
  }

  #deliverAll(outgoing: readonly Outgoing[]): void {
    for (const out of outgoing) this.#deliver(out);
  }

  #deliver(out: Outgoing): void {
    switch (out.kind) {
      case "notify":
        if (out.to === "everyone") this.#options.announce(out.notification);
        else this.tell(out.notification);
        return;
      case "delta":
        for (const follower of this.#followers) follower.sendDelta(out.notification);
        return;
      case "ask":
      case "resolved":
      case "call":
      case "called":
        this.#ask(out);
    }
  }

  #ask(out: Outgoing): void {
    const { heddle, threadId } = this.#options;
    switch (out.kind) {
      case "ask":
        return this.#requests.open(out.approvalId, questionFor(heddle, threadId, out));
      case "call":
        return this.#requests.open(out.itemId, callFor(heddle, threadId, out));
      case "resolved":
        return this.#requests.close(out.approvalId);
      case "called":
        return this.#requests.close(out.itemId);
      case "notify":
      case "delta":
    }
  }
}
