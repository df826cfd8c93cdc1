import { setImmediate } from "node:timers/promises";

/** About a millisecond of small system calls. */
const AT_ONCE = 32;

/** Works through a long list and lets other work of this process run in between. */
export async function inTurns<T>(entries: readonly T[], work: (entry: T) => void): Promise<void> {
  for (const [index, entry] of entries.entries()) {
    work(entry);
    if (index % AT_ONCE === AT_ONCE - 1) await setImmediate();
  }
}
