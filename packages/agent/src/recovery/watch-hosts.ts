/**
 * Closes, or finds parked, what other hosts leave when they stop renewing their leases, for as long as a server runs. What
 * processes of this host leave is found on the next start.
 */
import type { Journal } from "@heddle/journal";
import { recover, type Recovered } from "./recover.ts";

export function watchHosts(journal: Journal, onParked: (parked: Recovered["parked"]) => void): AsyncDisposable {
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => onParked((await recover(journal, { isElsewhere: true })).parked);
  const timer = setInterval(() => {
    // A store that cannot be read or written now is looked at again.
    looking ??= look()
      .catch(() => undefined)
      .finally(() => {
        looking = undefined;
      });
  }, journal.leases.renewEveryMs).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await looking;
    },
  };
}
