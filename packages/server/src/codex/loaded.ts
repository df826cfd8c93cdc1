/**
 * The threads that clients work with now: where their next turn works, and the feed while it has followers or a running
 * turn. What is here is lost with the server and costs nobody anything: a thread that is resumed is read again.
 */
import { reasonOf } from "@heddle/protocol";
import { ThreadFeed, type FeedOptions, type Follower } from "../followers/subscribe.ts";

export interface LoadedThread {
  readonly threadId: string;
  /** Where its next turn works. */
  workspace: string;
  readonly isEphemeral: boolean;
  /** Whether clients change its running turns, by what came with its start; absent: as the owner says. */
  readonly changesTurns?: boolean | undefined;
}

/** Beyond this, threads without followers are unloaded, the longest unused first. */
const MAX_LOADED = 1_000;
/** How long an idle thread without followers stays loaded. */
const IDLE_MS = 30 * 60_000;

export interface LoadedOptions extends Omit<FeedOptions, "threadId" | "isNew"> {
  readonly idleMs?: number;
}

export class LoadedThreads implements AsyncDisposable {
  readonly #options: LoadedOptions;
  /** Threads without followers, with the timer that unloads them. */
  readonly #idle = new Map<string, NodeJS.Timeout>();
  readonly #threads = new Map<string, LoadedThread>();
  readonly #feeds = new Map<string, Promise<ThreadFeed>>();
  /** Feeds that are open, for those who cannot wait. */
  readonly #open = new Map<string, ThreadFeed>();

  constructor(options: LoadedOptions) {
    this.#options = options;
  }

  get ids(): readonly string[] {
    return [...this.#threads.keys()];
  }

  get all(): readonly LoadedThread[] {
    return [...this.#threads.values()];
  }

  get(threadId: string): LoadedThread | undefined {
    return this.#threads.get(threadId);
  }

  load(thread: LoadedThread): LoadedThread {
    this.#threads.delete(thread.threadId);
    this.#threads.set(thread.threadId, thread);
    this.#stay(thread.threadId);
    this.#forgetOldest();
    return thread;
  }

  /** undefined: it has no followers and no running turn. */
  openFeed(threadId: string): ThreadFeed | undefined {
    return this.#open.get(threadId);
  }

  get openFeeds(): readonly ThreadFeed[] {
    return [...this.#open.values()];
  }

  /** `isNew`: see `FeedOptions`. */
  feed(threadId: string, { isNew = false } = {}): Promise<ThreadFeed> {
    const known = this.#feeds.get(threadId);
    if (known !== undefined) return known;
    this.#stay(threadId);
    const opening = ThreadFeed.open({ ...this.#options, threadId, isNew });
    this.#feeds.set(threadId, opening);
    opening.then(
      (feed) => {
        if (this.#feeds.get(threadId) !== opening) return;
        this.#open.set(threadId, feed);
        this.#endAfterTurns(threadId, feed);
      },
      () => this.#feeds.delete(threadId),
    );
    return opening;
  }

  /** True when it was following. The feed ends with its last follower and its running turn. */
  leave(threadId: string, follower: Follower): boolean {
    const feed = this.#open.get(threadId);
    const wasFollowing = feed?.remove(follower) ?? false;
    if (feed !== undefined) this.#endWhenIdle(threadId, feed);
    return wasFollowing;
  }

  leaveAll(follower: Follower): void {
    for (const [threadId, feed] of this.#open) if (feed.has(follower)) this.leave(threadId, follower);
  }

  async unload(threadId: string): Promise<void> {
    this.#threads.delete(threadId);
    this.#stay(threadId);
    const feed = this.#feeds.get(threadId);
    this.#feeds.delete(threadId);
    this.#open.delete(threadId);
    await (await feed)?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#idle.values()) clearTimeout(timer);
    this.#idle.clear();
    await Promise.allSettled([...this.#feeds.keys()].map((threadId) => this.unload(threadId)));
  }

  /** The end of a turn is sent to every client, even when the thread has no followers any more. */
  #endAfterTurns(threadId: string, feed: ThreadFeed): void {
    feed.turnEnded.then(
      () => {
        this.#endWhenIdle(threadId, feed);
        if (this.#open.get(threadId) === feed) this.#endAfterTurns(threadId, feed);
      },
      () => undefined,
    );
  }

  #endWhenIdle(threadId: string, feed: ThreadFeed): void {
    if (this.#open.get(threadId) !== feed || feed.isNeeded) return;
    this.#feeds.delete(threadId);
    this.#open.delete(threadId);
    feed[Symbol.asyncDispose]().catch((error: unknown) => this.#options.log(reasonOf(error)));
    this.#stay(threadId);
    // One that is to be deleted with the server must not be forgotten before.
    if (this.#threads.get(threadId)?.isEphemeral === true) return;
    const timer = setTimeout(() => this.#close(threadId), this.#options.idleMs ?? IDLE_MS);
    this.#idle.set(threadId, timer.unref());
  }

  #stay(threadId: string): void {
    clearTimeout(this.#idle.get(threadId));
    this.#idle.delete(threadId);
  }

  /** Unloads a thread without followers, and announces it. */
  #close(threadId: string): void {
    this.#stay(threadId);
    if (this.#feeds.has(threadId) || !this.#threads.delete(threadId)) return;
    const { announce, heddle } = this.#options;
    heddle.mcp.rest(threadId);
    announce({ method: "thread/status/changed", params: { threadId, status: { type: "notLoaded" } } });
    announce({ method: "thread/closed", params: { threadId } });
  }

  #forgetOldest(): void {
    for (const threadId of this.#threads.keys()) {
      if (this.#threads.size <= MAX_LOADED) return;
      if (!this.#feeds.has(threadId)) this.#close(threadId);
    }
  }
}
