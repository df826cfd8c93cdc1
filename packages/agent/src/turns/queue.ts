/**
 * Input that waits for its turn, kept in the journal: durable before it is acknowledged, begun in order when the running
 * turn has ended, and still there after a restart. Every door uses the same queue of a thread; one that is open in several
 * processes begins each input once, because the admission takes it out.
 *
 *   turn.queued ─▶ (turn.queued again: changed, or moved) ─▶ turn.admitted (the same id) │ turn.dequeued
 */
import { setTimeout as delay } from "node:timers/promises";
import {
  HeddleError,
  isUser,
  newTurnId,
  reasonOf,
  toHeddleError,
  type Author,
  type By,
  type EventOf,
  type Failure,
  type TurnSettings,
} from "@heddle/protocol";
import type { Journal, TurnRow } from "@heddle/journal";
import { appendAt } from "../threads/append-at.ts";
import { eventAt } from "../threads/history.ts";
import { awaitTerminal } from "./terminal.ts";
import type { Acts, Heddle, StartTurn } from "../heddle.ts";

export interface QueueInput extends By, Pick<StartTurn, "input" | "once" | "traceparent"> {
  readonly threadId: string;
  /** Resolved when it was queued: later nobody may be there to ask. */
  readonly settings: TurnSettings;
  readonly clientId?: string | undefined;
  /** It does not begin behind a turn that the user interrupted, until `start` or the end of another turn. */
  readonly isHeldByInterrupt?: boolean | undefined;
}

export interface QueuedInput extends QueueInput {
  readonly turnId: string;
  readonly queuedAt: number;
  /** Of the event that queued it. */
  readonly version: number;
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
    const { turnId, input, settings, once, clientId, traceparent, afterInterrupt } = event.body;
    const isHeldByInterrupt = afterInterrupt === "wait";
    const { author: by, at: queuedAt, version } = event;
    inputs.push({
      threadId,
      turnId,
      input,
      settings,
      once,
      clientId,
      traceparent,
      isHeldByInterrupt,
      by,
      queuedAt,
      version,
    });
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
  async add(asked: QueueInput): Promise<string> {
    const { journal } = this.#options.heddle;
    const { threadId, clientId } = asked;
    const waiting = await journal.threads.queued(threadId);
    if (waiting.length >= MAX_QUEUED) {
      throw new HeddleError("limit.reached", `thread ${threadId} has ${MAX_QUEUED} queued inputs, which is the limit`);
    }
    const turnId = newTurnId();
    await journal.append({
      stream: threadId,
      author: asked.by,
      events: [queuedEvent(turnId, asked)],
      ...(clientId === undefined ? {} : { key: `turn.queued:${threadId}:${clientId}` }),
    });
    this.#drain(threadId);
    return turnId;
  }

  /**
   * `change` answers what is to wait instead, the same inputs in any order or with other content; it may throw. Everything
   * from the first change on is queued again in one append.
   */
  async change(
    { threadId, by }: Pick<QueueInput, "threadId" | "by">,
    change: (waiting: readonly QueuedInput[]) => readonly QueuedInput[],
  ): Promise<readonly QueuedInput[]> {
    const { journal } = this.#options.heddle;
    return appendAt(journal, threadId, async (expectedVersion) => {
      const before = await queuedInputs(journal, threadId);
      const after = change(before);
      const first = after.findIndex((input, index) => input !== before[index]);
      if (first < 0) return after;
      const moved = after.slice(first).map((input) => queuedEvent(input.turnId, input));
      const events = moved.map((event, at) => (at === moved.length - 1 ? event : { ...event, isMore: true as const }));
      await journal.append({ stream: threadId, author: by, events, expectedVersion });
      return after;
    });
  }

  /**
   * Begins one input now, whatever it waited for; the first where none is named. `turn.active`: another turn runs.
   * `turn.not-found`: it is not queued, or nothing is.
   */
  async start({ threadId, turnId }: Pick<QueueInput, "threadId"> & { readonly turnId?: string }): Promise<string> {
    const inputs = await queuedInputs(this.#options.heddle.journal, threadId);
    const wanted = turnId === undefined ? inputs[0] : inputs.find((input) => input.turnId === turnId);
    if (wanted === undefined) {
      throw new HeddleError("turn.not-found", turnId === undefined ? "nothing is queued" : `${turnId} is not queued`);
    }
    await this.#startTurn(wanted);
    return wanted.turnId;
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
        if (!this.#closing.signal.aborted) this.#options.log(`input that waits in ${threadId}: ${reasonOf(error)}`);
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
      const after = await journal.version(threadId);
      const [next] = await queuedInputs(journal, threadId);
      if (next === undefined) return;
      const last = await journal.threads.lastTurn(threadId);
      if (last?.status === "open") await awaitTerminal(journal, threadId, last.id, last.admittedVersion, signal);
      else if (await isHeld(journal, next, last)) await awaitChange(journal, { threadId, after, signal });
      else await this.#begin(next);
    }
  }

  async #startTurn(queued: QueuedInput): Promise<void> {
    const { threadId, turnId, input, settings, once, clientId, traceparent, by, version } = queued;
    const named = clientId === undefined ? {} : { clientId };
    const begun = { thread: threadId, turnId, queuedVersion: version, input, settings, once, traceparent, ...named };
    const { done } = await this.#options.heddle.as(by).startTurn(begun);
    done.catch(() => undefined);
  }

  async #begin(queued: QueuedInput): Promise<void> {
    const { threadId, turnId } = queued;
    const { journal } = this.#options.heddle;
    try {
      await this.#startTurn(queued);
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

function queuedEvent(turnId: string, asked: QueueInput): EventOf<"turn.queued"> {
  const { input, settings, once = [], clientId, traceparent, isHeldByInterrupt } = asked;
  return {
    type: "turn.queued",
    v: 1,
    turnId,
    input: [...input],
    settings,
    ...(once.length === 0 ? {} : { once: [...once] }),
    ...(clientId === undefined ? {} : { clientId }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(isHeldByInterrupt === true ? { afterInterrupt: "wait" as const } : {}),
  };
}

/** A server that ends interrupts too; only what the user stopped holds the queue. */
async function isHeld(journal: Journal, next: QueuedInput, last: TurnRow | undefined): Promise<boolean> {
  if (next.isHeldByInterrupt !== true || last?.status !== "interrupted") return false;
  const types = ["turn.interrupt-requested"] as const;
  const asked = await journal.read({ stream: next.threadId, after: last.admittedVersion, types });
  return asked.some(({ body, author }) => "turnId" in body && body.turnId === last.id && isUser(author));
}

/** Resolves when a turn begins or ends, or the queue changes. */
async function awaitChange(
  journal: Journal,
  { threadId, after, signal }: { readonly threadId: string; readonly after: number; readonly signal: AbortSignal },
): Promise<void> {
  for await (const { body } of journal.tail({ stream: threadId, after, signal })) {
    if (CHANGES.has(body.type)) return;
  }
}

const CHANGES: ReadonlySet<string> = new Set(["turn.queued", "turn.dequeued", "turn.admitted", "turn.completed"]);
