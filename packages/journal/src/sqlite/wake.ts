/**
 * Wakes followers when there is something new in SQLite. Commits of this process wake them at once; those of others are
 * found by polling, only while someone waits.
 */
import { createFollowers, type Wake } from "../record/followers.ts";

export type { Follower, Wake } from "../record/followers.ts";

/** Half of the 50 ms that a reader in another process may lag behind. */
const POLL_MS = 25;
/** After a long silence: still within those 50 ms, at little more than half the cost. */
const IDLE_POLL_MS = 45;
const IDLE_AFTER_POLLS = 200;

/**
 * `changeCount`: a number that differs after each commit of another connection; `onOthers` is called before anyone
 * wakes.
 */
export function createWake(changeCount: () => number, onOthers: () => void): Wake {
  let timer: NodeJS.Timeout | undefined;
  let seen: number | undefined;
  let quietPolls = 0;
  let everyMs = POLL_MS;

  const followers = createFollowers({
    // Nobody has polled while nobody followed.
    begins: () => (seen = ask()),
    waits() {
      quietPolls = 0;
      keepPace();
    },
    waitsNoMore() {
      clearInterval(timer);
      timer = undefined;
    },
  });

  function keepPace(): void {
    const paceMs = quietPolls < IDLE_AFTER_POLLS ? POLL_MS : IDLE_POLL_MS;
    if (timer !== undefined && paceMs === everyMs) return;
    clearInterval(timer);
    everyMs = paceMs;
    timer = setInterval(poll, everyMs);
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
      followers.all();
    }
    if (timer !== undefined) keepPace();
  }

  return followers;
}
