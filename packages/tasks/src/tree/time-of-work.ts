/**
 * When the agent's files were last changed, as a room shows it: at the judgement, all at once, and later than everything of
 * the beginning. What was built before is then out of date, whatever times the agent set.
 */
import type { TreeEntry } from "./manifest.ts";

const SECOND_MS = 1000;

/** In milliseconds. `others`: what has to be older. */
export function timeOfWork(others: Iterable<TreeEntry>, now = Date.now()): number {
  let newest = 0n;
  for (const { mtimeNs } of others) if (mtimeNs > newest) newest = mtimeNs;
  // A whole second: some tools and file systems know no less.
  return Math.max(now, Number(newest / 1_000_000n) + SECOND_MS);
}
