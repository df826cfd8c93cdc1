/**
 * Wakes followers of a stream, or of all, when there is something new. Commits of this process wake them at once; those
 * of others are found by polling SQLite, only while someone waits. Followers of one stream sleep through commits of
 * others: a server has hundreds of quiet threads.
 */

/** Half of the 50 ms that a reader in another process may lag behind. */
const POLL_MS = 25;
/** After a long silence: still within those 50 ms, at little more than half the cost. */
const IDLE_POLL_MS = 45;
const IDLE_AFTER_POLLS = 200;

export interface Wake {
  follow(stream: string | undefined): Follower;
  now(stream: string): void;
  close(): void;
}

export interface Follower extends Disposable {
  /** Before reading: a commit from here on ends the next wait. */
  mark(): void;
  /** Resolves after a commit since the mark, when the signal aborts, or when the wake is closed. */
  wait(signal: AbortSignal): Promise<void>;
}

/**
 * `changeCount`: a number that differs after each commit of another connection; `onOthers` is called before anyone
 * wakes.
 */
export function createWake(changeCount: () => number, onOthers: () => void): Wake {
  const followers = new Map<string | undefined, Set<Sleeper>>();
  let waiting = 0;
  let timer: NodeJS.Timeout | undefined;
  let seen: number | undefined;
  let isClosed = false;
  let quietPolls = 0;
  let everyMs = POLL_MS;

  function keepPace(): void {
    const paceMs = quietPolls < IDLE_AFTER_POLLS ? POLL_MS : IDLE_POLL_MS;
    if (timer !== undefined && paceMs === everyMs) return;
    clearInterval(timer);
    everyMs = paceMs;
    timer = setInterval(poll, everyMs);
  }

  function wakeAll(): void {
    for (const key of followers.keys()) wakeOf(key);
  }

  function wakeOf(key: string | undefined): void {
    for (const follower of followers.get(key) ?? []) follower.wake();
  }

  /** A store that cannot be polled counts as changed; its readers report the failure. */
  function ask(): number | undefined {
    try {
      return changeCount();
    } catch {
      return undefined;
    }
  }

  function poll(): void {
    const before = seen;
    seen = ask();
    const isQuiet = seen !== undefined && seen === before;
    quietPolls = isQuiet ? quietPolls + 1 : 0;
    if (!isQuiet) {
      onOthers();
      wakeAll();
    }
    if (timer !== undefined) keepPace();
  }

  function waits(): void {
    waiting += 1;
    if (timer !== undefined) return;
    quietPolls = 0;
    keepPace();
  }

  function waitsNoMore(): void {
    waiting -= 1;
    if (waiting > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return {
    follow(stream) {
      // Nobody has polled while nobody followed.
      if (followers.size === 0) seen = ask();
      const follower = new Sleeper({ waits, waitsNoMore });
      const beside = followers.get(stream);
      if (beside === undefined) followers.set(stream, new Set([follower]));
      else beside.add(follower);
      return {
        mark: () => follower.mark(),
        wait: (signal) => (isClosed ? Promise.resolve() : follower.wait(signal)),
        [Symbol.dispose]() {
          const others = followers.get(stream);
          others?.delete(follower);
          if (others?.size === 0) followers.delete(stream);
        },
      };
    },
    now(stream) {
      wakeOf(stream);
      wakeOf(undefined);
    },
    close() {
      isClosed = true;
      wakeAll();
    },
  };
}

class Sleeper {
  readonly #watch: { waits(): void; waitsNoMore(): void };
  #isNews = false;
  #rise: (() => void) | undefined;

  constructor(watch: { waits(): void; waitsNoMore(): void }) {
    this.#watch = watch;
  }

  mark(): void {
    this.#isNews = false;
  }

  wake(): void {
    this.#isNews = true;
    this.#rise?.();
  }

  wait(signal: AbortSignal): Promise<void> {
    if (this.#isNews || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const rise = (): void => {
        this.#rise = undefined;
        signal.removeEventListener("abort", rise);
        this.#watch.waitsNoMore();
        resolve();
      };
      this.#rise = rise;
      signal.addEventListener("abort", rise, { once: true });
      this.#watch.waits();
    });
  }
}
