/**
 * Delivers what is queued for one sink, one at a time, for as long as it takes.
 *
 * - In order. What fails stays first in the queue for the first tries; then the others pass it by, so that one that can never
 *   arrive does not hold up the rest for ever.
 * - After failures in a row the whole sink waits, longer each time up to ten minutes: a receiver that is down is asked
 *   once in a while, not once for everything that waits for it.
 * - At least once. A crash after the send and before that is stored sends it again, with the same id.
 */
import { reasonOf } from "@heddle/protocol";
import type { Journal, NotificationRow } from "@heddle/journal";
import { failpoint } from "@heddle/protocol/failpoints";
import { asRetry, sinkStream, type SendResult, type Sink } from "./sink.ts";

/** Tries during which a notification holds up those behind it. */
const ORDERED_TRIES = 3;
const FIRST_WAIT_MS = 1_000;
const WAIT_FACTOR = 4;
const MAX_WAIT_MS = 600_000;
/** After a day a notification is given up, at its next failure. */
const PATIENCE_MS = 86_400_000;
/** The longest wait that a receiver can ask for. */
const MAX_RETRY_AFTER_MS = 3_600_000;
const MAX_MESSAGE_CHARS = 500;

export interface DeliveryOptions {
  readonly journal: Journal;
  readonly sink: Sink;
  readonly now: () => number;
  readonly firstWaitMs?: number | undefined;
  readonly log: (line: string) => void;
}

export type Delivery = ReturnType<typeof openDelivery>;

export function openDelivery(options: DeliveryOptions) {
  const ending = new AbortController();
  const cutting = new AbortController();
  const state: Pause = { failures: 0, until: 0, waitMs: (failures) => waitMs(failures, options.firstWaitMs) };
  const bell = createBell(ending.signal);
  const ended = keepGoing(options, state, { signal: ending.signal, sending: cutting.signal, bell });
  return {
    /** Something was queued, or redelivered, which resets the failures. */
    wake(kind: "queued" | "redelivered"): void {
      if (kind === "redelivered") Object.assign(state, { failures: 0, until: 0 });
      bell.ring();
    },
    // Cut off at once, it would arrive and be sent again all the same.
    [Symbol.asyncDispose]: (): Promise<void> => endSoon(ended, { ending, cutting }),
  };
}

/** How long closing waits for what is being sent. */
const LAST_MS = 2_000;

/** Asks to end, and cuts off what has not ended after a moment. */
export async function endSoon(
  ended: Promise<unknown>,
  { ending, cutting }: { readonly ending: AbortController; readonly cutting: AbortController },
): Promise<void> {
  ending.abort();
  const cut = setTimeout(() => cutting.abort(), LAST_MS);
  await ended;
  clearTimeout(cut);
}

/** Of the whole sink: failures in a row, and the pause after them. */
interface Pause {
  failures: number;
  until: number;
  readonly waitMs: (failures: number) => number;
}

interface Running {
  /** What is due is still tried; nothing is waited for. */
  readonly signal: AbortSignal;
  /** Cuts off the current try. */
  readonly sending: AbortSignal;
  readonly bell: Bell;
}

/** A store that cannot be written now may be later; until then the same is sent again. */
async function keepGoing(options: DeliveryOptions, pause: Pause, running: Running): Promise<void> {
  for (;;) {
    try {
      return await run(options, pause, running);
    } catch (error) {
      if (running.signal.aborted) return;
      options.log(`notifications to ${options.sink.name} are delayed: ${reasonOf(error)}`);
      pause.failures += 1;
      await running.bell.after(running.bell.rung(), pause.waitMs(pause.failures));
    }
  }
}

async function run({ journal, sink, now, log }: DeliveryOptions, pause: Pause, running: Running): Promise<void> {
  const { signal, bell } = running;
  while (!running.sending.aborted) {
    const rung = bell.rung();
    const { head, late } = await journal.notifications.next(sink.name, ORDERED_TRIES);
    // After a failure another one shows whether the receiver is down or this one cannot arrive; otherwise the older goes first.
    const due = dueOf(pause.failures > 0 ? [head, late] : [late, head], now());
    const pausedMs = pause.until - performance.now();
    if (due.row === undefined || pausedMs > 0) {
      if (signal.aborted) return;
      await bell.after(rung, due.inMs === undefined ? undefined : Math.max(pausedMs, due.inMs));
      continue;
    }
    const sent = await attempt(sink, due.row, running.sending);
    const { pauseMs, ...result } = settled(sent, due.row, { sink, now: now(), waitMs: pause.waitMs });
    if (running.sending.aborted && result.outcome !== "delivered") return;
    failpoint("notify.before-settle");
    await journal.append({
      stream: sinkStream(sink.name),
      author: "system",
      durability: "relaxed",
      events: [{ type: "notification.tried", v: 1, notificationId: due.row.id, ...result }],
    });
    if (result.outcome === "dead") log(`notification ${due.row.id} to ${sink.name} is dead: ${result.message}`);
    if (result.outcome === "retry") {
      pause.failures += 1;
      pause.until = performance.now() + Math.max(pause.waitMs(pause.failures), pauseMs);
    } else Object.assign(pause, { failures: 0, until: 0 });
  }
}

/**
 * The first whose time has come, and how long until the next one's. A head that is not due keeps those behind it waiting.
 * A time that lies further ahead than any wait is that of a clock that was wrong.
 */
function dueOf(
  rows: readonly (NotificationRow | undefined)[],
  now: number,
): { readonly row: NotificationRow | undefined; readonly inMs: number | undefined } {
  const waiting = rows.flatMap((row) => {
    const inMs = (row?.nextAt ?? 0) - now;
    return row === undefined ? [] : [{ row, inMs: inMs > MAX_RETRY_AFTER_MS ? 0 : Math.max(0, inMs) }];
  });
  const row = waiting.find(({ inMs }) => inMs === 0)?.row;
  return { row, inMs: waiting.length === 0 ? undefined : Math.min(...waiting.map(({ inMs }) => inMs)) };
}

async function attempt(sink: Sink, row: NotificationRow, signal: AbortSignal): Promise<SendResult> {
  try {
    const result = await sink.send({ id: row.id, event: row.event, payload: row.payload }, { signal });
    failpoint("notify.after-send");
    return result;
  } catch (error) {
    return asRetry(error);
  }
}

interface Settled extends Pick<SendResult, "message" | "status"> {
  readonly outcome: SendResult["kind"];
  readonly nextAt?: number;
}

/** A retry becomes dead when its tries or its day are used up. */
function settled(
  result: SendResult,
  row: NotificationRow,
  { sink, now, waitMs: wait }: { readonly sink: Sink; readonly now: number } & Pick<Pause, "waitMs">,
): Settled & { readonly pauseMs: number } {
  const sent = {
    message: result.message.slice(0, MAX_MESSAGE_CHARS),
    ...(result.status === undefined ? {} : { status: result.status }),
  };
  if (result.kind !== "retry") return { outcome: result.kind, ...sent, pauseMs: 0 };
  const tries = row.tries + 1;
  if (tries >= (sink.maxTries ?? Infinity)) {
    return { outcome: "dead", ...sent, message: `${sent.message}; given up after ${tries} tries`, pauseMs: 0 };
  }
  if (now - row.queuedAt > PATIENCE_MS && tries >= ORDERED_TRIES) {
    return { outcome: "dead", ...sent, message: `${sent.message}; given up after a day`, pauseMs: 0 };
  }
  const pauseMs = Math.min(result.afterMs ?? 0, MAX_RETRY_AFTER_MS);
  return { outcome: "retry", ...sent, nextAt: now + Math.max(wait(tries), pauseMs), pauseMs };
}

export function waitMs(failures: number, firstMs: number = FIRST_WAIT_MS): number {
  return Math.min(MAX_WAIT_MS, firstMs * WAIT_FACTOR ** Math.min(failures - 1, 8));
}

type Bell = ReturnType<typeof createBell>;

function createBell(signal: AbortSignal) {
  let count = 0;
  let answer = (): void => undefined;
  signal.addEventListener("abort", () => answer(), { once: true });
  return {
    ring(): void {
      count += 1;
      answer();
    },
    /** Read before looking and passed to `after`, so that no ring in between is missed. */
    rung: (): number => count,
    after: (rung: number, ms: number | undefined): Promise<void> =>
      new Promise((resolve) => {
        if (signal.aborted || rung !== count) return resolve();
        const timer = ms === undefined ? undefined : setTimeout(() => answer(), ms);
        answer = () => {
          clearTimeout(timer);
          answer = () => undefined;
          resolve();
        };
      }),
  };
}
