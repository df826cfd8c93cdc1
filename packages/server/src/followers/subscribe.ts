/**
 * From the journal to the clients: one feed a followed thread. It tails the thread's stream, hears the live deltas, lets
 * the dialect say both, and hands the result to whoever follows. The journal stays the truth: a feed holds nothing that
 * it could not read again.
 *
 *   journal.tail ─┐
 *                 ├─▶ dialect ─▶ followers (turns, items, questions) and everyone (status)
 *   live deltas ──┘
 */
import { readHistory, type Heddle } from "@heddle/agent";
import { isHeddleError, type By, type StoredEvent } from "@heddle/protocol";
import {
  ThreadDialect,
  type CodexNotification,
  type CodexServerRequest,
  type CodexThreadStatus,
  type Outgoing,
} from "@heddle/dialects/codex-app-server";
import { callFor, questionFor } from "./follower-requests.ts";
import { OpenRequests } from "./open-requests.ts";
import type { Answered, RequestId } from "../rpc/peer.ts";

/** Whoever is told of a thread; a connection is one. */
export interface Follower extends By {
  notify(notification: CodexNotification): void;
  notifyDelta(notification: CodexNotification): void;
  ask(id: RequestId, request: CodexServerRequest, done: (answer: Answered) => void): void;
  withdraw(id: RequestId): void;
}

export interface FeedOptions {
  readonly heddle: Heddle;
  readonly threadId: string;
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
  readonly #closing = new AbortController();
  #seen: number;
  #holds = 0;
  #released = Promise.withResolvers<void>();
  #following: Promise<void> = Promise.resolve();
  #ended = Promise.withResolvers<void>();

  private constructor(options: FeedOptions, history: readonly StoredEvent[]) {
    const { threadId, contextWindow } = options;
    this.#options = options;
    this.#dialect = new ThreadDialect({ threadId, contextWindow });
    this.#requests = new OpenRequests({ ...options, followers: this.#followers });
    // Of the past only what is still open matters.
    for (const event of history) for (const out of this.#dialect.event(event)) this.#ask(out);
    this.#seen = history.at(-1)?.version ?? 0;
  }

  static async open(options: FeedOptions): Promise<ThreadFeed> {
    const { heddle, threadId } = options;
    const feed = new ThreadFeed(options, await readHistory(heddle.journal, threadId));
    const live = heddle.onDelta(threadId, (delta) => feed.#deliverAll(feed.#dialect.delta(delta)));
    feed.#following = feed.#follow().finally(() => live[Symbol.dispose]());
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

  /** Somebody follows, a turn runs, or a call is about to set something going. */
  get isNeeded(): boolean {
    return this.#followers.size > 0 || this.#dialect.activeTurnId !== undefined || this.#holds > 0;
  }

  /** The last version of the thread that followers have been told of. */
  get seen(): number {
    return this.#seen;
  }

  /** Resolves when a turn ends. */
  get turnEnded(): Promise<void> {
    return this.#ended.promise;
  }

  /** From now on it is told everything; first of all the questions that wait for an answer. */
  add(follower: Follower): void {
    if (this.#followers.has(follower)) return;
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

  /** What a call has done and no event of the journal says in full. */
  tell(notification: CodexNotification): void {
    for (const follower of this.#followers) follower.notify(notification);
  }

  /** Nothing new is told until it is released: an answer must not be overtaken by what it announces. */
  hold(): Disposable {
    this.#holds += 1;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#holds -= 1;
        if (this.#holds > 0) return;
        this.#released.resolve();
        this.#released = Promise.withResolvers<void>();
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#requests[Symbol.dispose]();
    this.#released.resolve();
    await this.#following;
  }

  async #follow(): Promise<void> {
    const { heddle, threadId, log } = this.#options;
    const { signal } = this.#closing;
    try {
      for await (const event of heddle.journal.tail({ stream: threadId, after: this.#seen, signal })) {
        while (this.#holds > 0 && !signal.aborted) await this.#released.promise;
        if (signal.aborted) return;
        this.#seen = event.version;
        this.#deliverAll(this.#dialect.event(event));
        if (event.body.type === "turn.completed") {
          this.#ended.resolve();
          this.#ended = Promise.withResolvers<void>();
        }
      }
    } catch (error) {
      // A thread that was deleted has no past left to read, and no followers that could want it.
      const isGone = isHeddleError(error) && error.code === "store.purged";
      if (!signal.aborted && !isGone) log(`thread ${threadId} can no longer be followed: ${String(error)}`);
    }
  }

  #deliverAll(outgoing: readonly Outgoing[]): void {
    for (const out of outgoing) this.#deliver(out);
  }

  #deliver(out: Outgoing): void {
    switch (out.kind) {
      case "notify":
        if (out.to === "everyone") this.#options.announce(out.notification);
        else for (const follower of this.#followers) follower.notify(out.notification);
        return;
      case "delta":
        for (const follower of this.#followers) follower.notifyDelta(out.notification);
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
