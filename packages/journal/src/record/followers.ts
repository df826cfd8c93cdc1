/**
 * Followers of a stream, or of all, who sleep until there is something new. Those of one stream sleep through commits of
 * others: a server has hundreds of quiet threads. How a store learns what other processes commit is its own affair.
 */
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

export interface Followers extends Wake {
  readonly isClosed: boolean;
  all(): void;
}

export interface FollowerEvents {
  /** Before the first follower of all. */
  begins(): void;
  /** The first one waits, after a time in which none did. */
  waits(): void;
  waitsNoMore(): void;
}

export function createFollowers(events: FollowerEvents): Followers {
  const followers = new Map<string | undefined, Set<Sleeper>>();
  let waiting = 0;
  let isClosed = false;

  const watch: SleepWatch = {
    waits() {
      waiting += 1;
      if (waiting === 1) events.waits();
    },
    waitsNoMore() {
      waiting -= 1;
      if (waiting === 0) events.waitsNoMore();
    },
  };

  function wakeOf(key: string | undefined): void {
    for (const follower of followers.get(key) ?? []) follower.wake();
  }

  function all(): void {
    for (const key of followers.keys()) wakeOf(key);
  }

  return {
    get isClosed() {
      return isClosed;
    },
    all,
    follow(stream) {
      if (followers.size === 0) events.begins();
      const follower = new Sleeper(watch);
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
      all();
    },
  };
}

interface SleepWatch {
  waits(): void;
  waitsNoMore(): void;
}

class Sleeper {
  readonly #watch: SleepWatch;
  #isNews = false;
  #rise: (() => void) | undefined;

  constructor(watch: SleepWatch) {
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
