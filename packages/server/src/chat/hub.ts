/**
 * From the journal to the clients of the chat dialect: one reader of everything, which numbers the events of each chat and
 * hands them to every connection. It holds nothing that it could not read again; while nobody listens it reads nothing.
 */
import { createSerial, type Heddle } from "@heddle/agent";
import { HeddleError, type ItemDelta, type StoredEvent } from "@heddle/protocol";
import { deletedUnread, type ChatEvent, type ChatLog } from "@heddle/dialects/chat";
import type { FanOut, FanOutListener } from "../followers/fan-out.ts";
import type { ChatConnection } from "./connection.ts";
import { readLog, type Past, type ReadLogOptions } from "./read-log.ts";

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
      const isTaken = ({ position }: StoredEvent): boolean => position <= this.#position;
      for (const [chatId, seq] of Object.entries(after)) past.set(chatId, await this.past(chatId, seq, isTaken));
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

  /** Where a chat stands, and its events after a number, if one is given. `thread.not-found` when there is none. */
  async past(threadId: string, after?: number, isTaken?: (event: StoredEvent) => boolean): Promise<Past> {
    const past = await this.#read(threadId, { ...(after === undefined ? {} : { after }), ...(isTaken && { isTaken }) });
    if (past === undefined) throw new HeddleError("thread.not-found", `no chat ${threadId}`);
    if (after !== undefined) refuseAhead(after, past.log.lastSeq);
    return past;
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

  /** undefined: it is no thread, or it was deleted. */
  async #logOf(stream: string, upTo: number): Promise<ChatLog | undefined> {
    const known = this.#logs.get(stream);
    if (known !== undefined) return known;
    // Later events are still to be sent.
    const isTaken = (event: StoredEvent): boolean => event.version <= upTo && event.position <= this.#position;
    const past = await this.#read(stream, { isTaken });
    if (past === undefined) return undefined;
    for (const event of past.log.pendingApprovals) {
      if ("request_id" in event.params) this.#remember(event.params.request_id, stream);
    }
    this.#logs.set(stream, past.log);
    return past.log;
  }

  async #read(threadId: string, options: Omit<ReadLogOptions, "contextWindow">): Promise<Past | undefined> {
    const { heddle, contextWindow } = this.#options;
    return readLog(heddle.journal, threadId, { contextWindow, ...options });
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

function refuseAhead(after: number, lastSeq: number): void {
  if (after <= lastSeq) return;
  throw new HeddleError("cursor.expired", `there is no event ${after} yet; the last one is ${lastSeq}`, {
    details: { last_seq: lastSeq, oldest_seq: 1 },
  });
}
