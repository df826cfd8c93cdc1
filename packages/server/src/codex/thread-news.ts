/**
 * What clients of app-server learn of threads as a whole, from the journal alone: begun, named, put away, deleted, and what
 * their next turns run with. Whichever door did it, everyone hears of it in the same words and the same order.
 */
import type { EventOf, StoredEvent, TurnSettings } from "@heddle/protocol";
import { settingsUpdated, threadNews } from "@heddle/dialects/codex-app-server";
import type { FanOutListener } from "../followers/fan-out.ts";
import type { ServerContext } from "../rpc/call.ts";
import type { LoadedThread } from "./loaded.ts";
import { changesBetween, nextSettings } from "./settings.ts";
import { describeThread } from "./thread-facts.ts";

interface Known {
  readonly settings: TurnSettings;
  readonly workspace: string;
}

export class ThreadNews implements FanOutListener {
  readonly #context: () => ServerContext;
  readonly #beginning = new Set<Promise<unknown>>();
  /** What clients know that the next turn runs with, and where. */
  readonly #known = new WeakMap<LoadedThread, Known>();
  /** Where the turn that is being admitted works. */
  readonly #moved = new Map<string, string>();

  /** The server knows its news as well; so it is asked for when it is needed. */
  constructor(context: () => ServerContext) {
    this.#context = context;
  }

  get #server(): ServerContext {
    return this.#context();
  }

  /** A thread that is started here is announced once it is loaded. */
  begin<T>(beginning: Promise<T>): Promise<T> {
    this.#beginning.add(beginning);
    const forget = (): void => void this.#beginning.delete(beginning);
    beginning.then(forget, forget);
    return beginning;
  }

  /** What the clients of the thread have been sent. */
  answered(loaded: LoadedThread, settings: TurnSettings): void {
    this.#known.set(loaded, { settings, workspace: loaded.workspace });
  }

  async event(stored: StoredEvent): Promise<void> {
    const { stream, body } = stored;
    switch (body.type) {
      case "thread.created":
        if (body.parent !== undefined) await this.#followChild(stream, body);
        await this.#began(stream);
        break;
      case "thread.moved":
        this.#moved.set(stream, body.workspace);
        break;
      case "thread.settings-changed":
        await this.#changed(stream, body.changes["cwd"]);
        break;
      case "turn.admitted":
        await this.#changed(stream, this.#moved.get(stream));
        this.#moved.delete(stream);
        // Turns are announced to every client, whichever door started them.
        if (this.#server.threads.get(stream) !== undefined) await this.#server.threads.feed(stream);
        break;
      case "thread.archived":
        if (body.isArchived && !(await this.#isAtWork(stream))) await this.#server.threads.unload(stream);
        break;
      case "thread.deleted":
        await this.#server.threads.unload(stream);
        break;
      default:
    }
    for (const notification of threadNews(stored)) this.#server.announce(notification);
  }

  async #began(threadId: string): Promise<void> {
    await Promise.allSettled(this.#beginning);
    const row = await this.#server.heddle.journal.threads.get(threadId);
    if (row === undefined) return;
    const thread = await describeThread(this.#server, row);
    this.#server.announce({ method: "thread/started", params: { thread } });
  }

  /** Whoever follows a thread follows those that it starts: their questions are for the same people. */
  async #followChild(threadId: string, { parent, workspace, isEphemeral }: EventOf<"thread.created">) {
    const { threads } = this.#server;
    const followers = threads.openFeed(parent?.threadId ?? "")?.followers ?? [];
    if (followers.length === 0) return;
    threads.load({ threadId, workspace, isEphemeral: isEphemeral === true });
    const feed = await threads.feed(threadId, { isNew: true });
    for (const follower of followers) feed.add(follower);
  }

  async #changed(threadId: string, workspace: unknown): Promise<void> {
    const { threads } = this.#server;
    const loaded = threads.get(threadId);
    if (loaded === undefined) return;
    if (typeof workspace === "string") loaded.workspace = workspace;
    const settings = await nextSettings(this.#server, loaded);
    const known = this.#known.get(loaded);
    this.answered(loaded, settings);
    if (known === undefined) return;
    const isOther = Object.keys(changesBetween(known.settings, settings)).length > 0;
    if (!isOther && loaded.workspace === known.workspace) return;
    threads.openFeed(threadId)?.tell(settingsUpdated(threadId, settings, loaded.workspace));
  }

  async #isAtWork(threadId: string): Promise<boolean> {
    return (await this.#server.heddle.journal.threads.get(threadId))?.lastTurnStatus === "open";
  }
}
