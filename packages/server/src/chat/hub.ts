/**
 * From the journal to the clients of the chat dialect: one reader of everything, which numbers the events of each chat and
 * hands them to every connection. It holds nothing that it could not read again; while nobody listens it reads nothing.
 */
import { createSerial, type Heddle } from "@heddle/agent";
import { HeddleError, isHeddleError, type ItemDelta, type StoredEvent } from "@heddle/protocol";
import { ChatLog, deletedUnread, type ChatEvent } from "@heddle/dialects/chat";
import type { FanOut, FanOutListener } from "../followers/fan-out.ts";
import type { ChatConnection } from "./connection.ts";

export interface HubOptions {
  readonly heddle: Heddle;
  readonly fanOut: () => Promise<FanOut>;
  readonly contextWindow: (model: string) => number | undefined;
}

/** Logs that are kept although nothing runs in them, so that the next event need not read the thread again. */
const MAX_IDLE_LOGS = 200;
const MAX_REMEMBERED = 1_000;
const LOCK = "hub";

export class ChatHub implements FanOutListener, Disposable {
  readonly #options: HubOptions;
  readonly #connections = new Set<ChatConnection>();
  readonly #logs = new Map<string, ChatLog>();
  /** Where a question was asked; the newest only. */
  readonly #approvals = new Map<string, string>();
  /** One event or one subscription at a time: what is told before and after it must fit. */
  readonly #lock = createSerial();
  #position = 0;
  #listening: Disposable | undefined;

  constructor(options: HubOptions) {
    this.#options = options;
  }

  /** Tells it everything that is stored from now on; what was stored before is in `past`, up to exactly here. */
  join(
    connection: ChatConnection,
    after: Readonly<Record<string, number>>,
    /** Called at exactly that moment. */
    joined: () => void,
  ): Promise<ReadonlyMap<string, Past>> {
    return this.#lock.run(LOCK, async () => {
      await this.#start();
      const past = new Map<string, Past>();
      for (const [chatId, seq] of Object.entries(after)) past.set(chatId, await this.#pastOf(chatId, seq));
      this.#connections.add(connection);
      joined();
      return past;
    });
  }

  leave(connection: ChatConnection): void {
    this.#connections.delete(connection);
  }

  /** Makes sure that what happens to a chat next can be numbered, even when its past is gone by then. */
  load(threadId: string): Promise<void> {
    return this.#lock.run(LOCK, async () => {
      if (this.#listening !== undefined) await this.#logOf(threadId, Number.POSITIVE_INFINITY);
    });
  }

  /** All events of a chat. `thread.not-found` when there is none. */
  past(threadId: string): Promise<Past> {
    return this.#readPast(threadId, Number.POSITIVE_INFINITY);
  }

  threadOfApproval(approvalId: string): string | undefined {
    return this.#approvals.get(approvalId);
  }

  [Symbol.dispose](): void {
    this.#listening?.[Symbol.dispose]();
  }

  async #start(): Promise<void> {
    const fanOut = await this.#options.fanOut();
    if (this.#listening !== undefined) return;
    this.#position = fanOut.seen;
    this.#listening = fanOut.listen(this);
  }

  async event(event: StoredEvent): Promise<void> {
    try {
      await this.#lock.run(LOCK, () => this.#take(event));
    } catch (error) {
      // One chat that cannot be read must not silence the others.
      this.#drop(event.stream);
      throw error;
    }
  }

  delta(delta: ItemDelta): void {
    for (const event of this.#logs.get(delta.threadId)?.delta(delta) ?? []) this.#tell(event, true);
  }

  async #take(stored: StoredEvent): Promise<void> {
    const { stream, version, body, position } = stored;
    // What was read with its past has been numbered already.
    const log = await this.#logOf(stream, version - 1);
    this.#position = position;
    if (log === undefined) {
      if (body.type === "thread.deleted") this.#tell(deletedUnread(stored), true);
      return;
    }
    if (version <= log.version) return;
    for (const event of log.event(stored)) this.#tell(event, false);
    if (body.type === "item.checkpointed") for (const grown of log.updated(body)) this.#tell(grown, true);
    if (body.type === "approval.requested") this.#remember(body.approvalId, stream);
    if (body.type === "thread.deleted") this.#drop(stream);
    if (body.type === "turn.completed") this.#dropIdle();
  }

  #tell(event: ChatEvent, isLive: boolean): void {
    for (const connection of this.#connections) connection.tell(event, isLive);
  }

  /** undefined: it is no thread, or its past is gone. */
  async #logOf(stream: string, upTo: number): Promise<ChatLog | undefined> {
    const known = this.#logs.get(stream);
    if (known !== undefined) return known;
    const { heddle, contextWindow } = this.#options;
    const log = new ChatLog({ threadId: stream, contextWindow });
    // Streams of other things may be long, and are not read for each of their events.
    const [first] = (await ownEvents(heddle, stream, 1)) ?? [];
    if (first?.body.type !== "thread.created") return undefined;
    const events = (await ownEvents(heddle, stream)) ?? [];
    for (const event of events) {
      // What comes after is still to be told.
      if (event.version > upTo || event.position > this.#position) break;
      log.event(event);
      if (event.body.type === "approval.requested") this.#remember(event.body.approvalId, stream);
    }
    this.#logs.set(stream, log);
    return log;
  }

  async #pastOf(chatId: string, after: number): Promise<Past> {
    const past = await this.#readPast(chatId, this.#position);
    refuseAhead(after, past.lastSeq);
    return { ...past, events: past.events.slice(after) };
  }

  async #readPast(threadId: string, upTo: number): Promise<Past> {
    const { heddle, contextWindow } = this.#options;
    const own = await ownEvents(heddle, threadId);
    if (own === undefined || own.length === 0) throw new HeddleError("thread.not-found", `no chat ${threadId}`);
    const log = new ChatLog({ threadId, contextWindow });
    const events = own.filter(({ position }) => position <= upTo).flatMap((event) => log.event(event));
    return { events, lastSeq: log.lastSeq, activeTurnId: log.activeTurnId, log };
  }

  #remember(approvalId: string, threadId: string): void {
    this.#approvals.set(approvalId, threadId);
    const [oldest] = this.#approvals.keys();
    if (this.#approvals.size > MAX_REMEMBERED && oldest !== undefined) this.#approvals.delete(oldest);
  }

  #drop(stream: string): void {
    this.#logs.delete(stream);
  }

  #dropIdle(): void {
    for (const [stream, log] of this.#logs) {
      if (this.#logs.size <= MAX_IDLE_LOGS) return;
      if (log.activeTurnId === undefined) this.#drop(stream);
    }
  }
}

export interface Past {
  readonly events: readonly ChatEvent[];
  readonly lastSeq: number;
  readonly activeTurnId: string | undefined;
  readonly log: ChatLog;
}

export function refuseAhead(after: number, lastSeq: number): void {
  if (after <= lastSeq) return;
  throw new HeddleError("cursor.expired", `there is no event ${after} yet; the last one is ${lastSeq}`, {
    details: { last_seq: lastSeq, oldest_seq: 1 },
  });
}

/** What a thread has seen itself, without the past of what it was forked from. undefined: it was deleted. */
async function ownEvents(heddle: Heddle, stream: string, limit?: number): Promise<readonly StoredEvent[] | undefined> {
  try {
    return await heddle.journal.read({ stream, after: 0, ...(limit === undefined ? {} : { limit }) });
  } catch (error) {
    if (isHeddleError(error) && error.code === "store.purged") return undefined;
    throw error;
  }
}
