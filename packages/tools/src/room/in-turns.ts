import { setImmediate } from "node:timers/promises";

/** So many small calls to the kernel take about a millisecond. */
const AT_ONCE = 32;

/** Works through a long list without keeping others of this process waiting. */
export async function inTurns<T>(entries: readonly T[], work: (entry: T) => void): Promise<void> {
  for (const [index, entry] of entries.entries()) {
    work(entry);
    if (index % AT_ONCE === AT_ONCE - 1) await setImmediate();
  }
}
