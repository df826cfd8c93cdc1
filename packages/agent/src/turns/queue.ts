/**
 * Input that waits for its turn, kept in the journal: durable before it is acknowledged, begun in order when the running
 * turn has ended, and still there after a restart. Every door uses the same queue of a thread; one that is open in several
 * processes begins each input once, because the admission takes it out.
 *
 *   turn.queued ─▶ turn.admitted (the same id) │ turn.dequeued
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  HeddleError,
  newTurnId,
  toHeddleError,
  type Author,
  type By,
  type Failure,
  type TurnSettings,
} from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { appendAt } from "../threads/append-at.ts";
import { eventAt } from "../threads/history.ts";
import { awaitTerminal } from "./terminal.ts";
import type { Acts, Heddle, StartTurn } from "../heddle.ts";

export interface QueueInput extends By, Pick<StartTurn, "input" | "once"> {
  readonly threadId: string;
  /** Resolved when it was queued: later nobody may be there to ask. */
  readonly settings: TurnSettings;
  readonly clientId?: string | undefined;
}

export interface QueuedInput extends QueueInput {
  readonly turnId: string;
  readonly queuedAt: number;
}

export interface DequeueInput extends Pick<QueuedInput, "threadId" | "turnId" | "by"> {
  readonly failure: Failure;
}

/** A program that queues more is broken. */
const MAX_QUEUED = 100;
const AGAIN_MS = 1000;

export interface QueueOptions {
  readonly heddle: Pick<Heddle, "journal"> & { as(by: Author): Pick<Acts, "startTurn"> };
  readonly log: (line: string) => void;
}

export async function queuedInputs(journal: Journal, threadId: string): Promise<readonly QueuedInput[]> {
  const inputs: QueuedInput[] = [];
  for (const { queuedVersion } of await journal.threads.queued(threadId)) {
    const event = await eventAt(journal, threadId, queuedVersion);
    if (event?.body.type !== "turn.queued") continue;
    const { turnId, input, settings, once, clientId } = event.body;
    inputs.push({ threadId, turnId, input, settings, once, clientId, by: event.author, queuedAt: event.at });
  }
  return inputs;
}

export function openTurnQueue(options: QueueOptions): TurnQueue {
  return new TurnQueue(options);
}

export class TurnQueue implements AsyncDisposable {
  readonly #options: QueueOptions;
  readonly #closing = new AbortController();
  readonly #drains = new Map<string, Promise<void>>();

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  /** Durable when it resolves; begun as soon as nothing before it runs or waits. Returns the id of its turn. */
  async add({ threadId, input, settings, once = [], clientId, by }: QueueInput): Promise<string> {
    const { journal } = this.#options.heddle;
    const waiting = await journal.threads.queued(threadId);
    if (waiting.length >= MAX_QUEUED) {
      throw new HeddleError("limit.reached", `thread ${threadId} has ${MAX_QUEUED} queued inputs, which is the limit`);
    }
    const turnId = newTurnId();
    await journal.append({
      stream: threadId,
      author: by,
      events: [
        {
          type: "turn.queued",
          v: 1,
          turnId,
          input: [...input],
          settings,
          ...(once.length === 0 ? {} : { once: [...once] }),
          ...(clientId === undefined ? {} : { clientId }),
        },
      ],
      ...(clientId === undefined ? {} : { key: `turn.queued:${threadId}:${clientId}` }),
    });
    this.#drain(threadId);
    return turnId;
  }

  /** False: it is not queued. */
  async remove({ threadId, turnId, failure, by }: DequeueInput): Promise<boolean> {
    const { journal } = this.#options.heddle;
    return appendAt(journal, threadId, async (expectedVersion) => {
      const waiting = await journal.threads.queued(threadId);
      if (!waiting.some((row) => row.turnId === turnId)) return false;
      const events = [{ type: "turn.dequeued", v: 1, turnId, failure }] as const;
      await journal.append({ stream: threadId, author: by, events, expectedVersion });
      return true;
    });
  }

  /** Begins what is queued in every thread; for a server that has just opened. */
  async resume(): Promise<void> {
    const waiting = await this.#options.heddle.journal.threads.queued();
    for (const threadId of new Set(waiting.map((row) => row.threadId))) this.#drain(threadId);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#drains.values());
  }

  #drain(threadId: string): void {
    if (this.#closing.signal.aborted) return;
    // A running drain looks again before it stops; but it may have looked before this input came.
    const before = this.#drains.get(threadId) ?? Promise.resolve();
    const mine = before
      .then(() => this.#beginAll(threadId))
      .catch((error: unknown) => {
        if (!this.#closing.signal.aborted) this.#options.log(`input that waits in ${threadId}: ${String(error)}`);
      })
      .finally(() => {
        if (this.#drains.get(threadId) === mine) this.#drains.delete(threadId);
      });
    this.#drains.set(threadId, mine);
  }

  async #beginAll(threadId: string): Promise<void> {
    const { journal } = this.#options.heddle;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const [next] = await queuedInputs(journal, threadId);
      if (next === undefined) return;
      const running = await journal.threads.lastTurn(threadId);
      if (running?.status !== "open") await this.#begin(next);
      else await awaitTerminal(journal, threadId, running.id, running.admittedVersion, signal);
    }
  }

  async #begin({ threadId, turnId, input, settings, once, clientId, by }: QueuedInput): Promise<void> {
    const { journal } = this.#options.heddle;
    try {
      const named = clientId === undefined ? {} : { clientId };
      const begun = { thread: threadId, turnId, input, settings, once, ...named };
      const { done } = await this.#options.heddle.as(by).startTurn(begun);
      done.catch(() => undefined);
    } catch (error) {
      const { code, message } = toHeddleError(error);
      // Another process has begun it, or another turn came first: the next look finds out.
      if (code === "turn.active" || code === "turn.not-found" || this.#closing.signal.aborted) return;
      // When the store has no room, the input stays queued.
      if ((await journal.refusal()) !== undefined && journal.damage === undefined) {
        await delay(AGAIN_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined);
        return;
      }
      await this.remove({ threadId, turnId, failure: { code, message }, by: "system" });
      this.#options.log(`a waiting turn of ${threadId} could not begin: ${message}`);
    }
  }
}
