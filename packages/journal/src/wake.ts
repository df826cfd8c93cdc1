/**
 * Wakes readers that wait for new events. A commit of this process wakes them at once; commits of others are noticed by
 * asking SQLite whether the file changed, every few milliseconds and only while somebody waits.
 */

/** Half of the 50 ms that a reader in another process may lag behind. */
const POLL_MS = 25;
/** While nothing happens for long: still within those 50 ms, at little more than half the cost of being idle. */
const IDLE_POLL_MS = 45;
const IDLE_AFTER_POLLS = 200;

export interface Wake {
  /** Taken before reading, handed to `after`: a commit in between is not missed. */
  mark(): number;
  /** Resolves when there was a commit after the mark, when the signal aborts, or when this is closed. */
  after(mark: number, signal: AbortSignal): Promise<void>;
  /** Something was committed here. */
  now(): void;
  close(): void;
}

/** `changeCount`: a number that differs after each commit of another connection. */
export function createWake(changeCount: () => number): Wake {
  const waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;
  let generation = 0;
  let seen: number | undefined;
  let isClosed = false;
  let quietPolls = 0;
  let everyMs = POLL_MS;

  /** At the pace that the silence so far allows. */
  function keepPace(): void {
    const paceMs = quietPolls < IDLE_AFTER_POLLS ? POLL_MS : IDLE_POLL_MS;
    if (timer !== undefined && paceMs === everyMs) return;
    clearInterval(timer);
    everyMs = paceMs;
    timer = setInterval(poll, everyMs);
  }

  function wakeAll(): void {
    generation += 1;
    for (const wake of waiting) wake();
  }

  function poll(): void {
    const before = seen;
    try {
      seen = changeCount();
    } catch {
      // The reader meets the same failure and reports it; here there is nobody to tell.
      seen = undefined;
    }
    const isQuiet = seen !== undefined && seen === before;
    quietPolls = isQuiet ? quietPolls + 1 : 0;
    if (!isQuiet) wakeAll();
    if (timer !== undefined) keepPace();
  }

  return {
    mark: () => generation,
    after(mark, signal) {
      if (isClosed || signal.aborted || generation !== mark) return Promise.resolve();
      return new Promise((resolve) => {
        const wake = (): void => {
          signal.removeEventListener("abort", wake);
          waiting.delete(wake);
          if (waiting.size === 0) {
            clearInterval(timer);
            timer = undefined;
          }
          resolve();
        };
        signal.addEventListener("abort", wake, { once: true });
        waiting.add(wake);
        if (timer === undefined) {
          quietPolls = 0;
          keepPace();
        }
      });
    },
    now: wakeAll,
    close() {
      isClosed = true;
      wakeAll();
    },
  };
}
