/**
 * The files whose paths fit a query best. Looked at a slice at a time, so that other calls are answered in between, and one
 * search after the other; one that nobody wants any more ends, and one that takes too long has what it has found.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { fuzzyFit, type Fit } from "./fuzzy.ts";

const MAX_RESULTS = 50;
/** Sorted at this many, not with every file. */
const MAX_UNSORTED = 1_000;
const SLICE_MS = 10;
/** Of its own work. A hundred thousand paths take a fifth of it, unless somebody made them to take long. */
const WORK_MS = 1_000;

export interface ListedFiles {
  readonly root: string;
  readonly files: readonly string[];
}

export interface RankedFile extends Fit {
  readonly root: string;
  readonly file: string;
}

export interface Ranking {
  readonly query: string;
  readonly lists: readonly ListedFiles[];
  readonly isWanted: () => boolean;
}

export type RankFiles = (ranking: Ranking) => Promise<readonly RankedFile[]>;

export function createRanking(workMs = WORK_MS): RankFiles {
  let last: Promise<unknown> = Promise.resolve();
  return (ranking) => {
    const mine = last.then(() => rank(ranking, workMs));
    last = mine.catch(() => undefined);
    return mine;
  };
}

async function rank({ query, lists, isWanted }: Ranking, workMs: number): Promise<readonly RankedFile[]> {
  let found: RankedFile[] = [];
  let [worked, since] = [0, performance.now()];
  for (const { root, files } of lists) {
    for (const file of files) {
      const took = performance.now() - since;
      if (took > SLICE_MS) {
        worked += took;
        await breathe();
        since = performance.now();
      }
      if (worked > workMs || !isWanted()) return bestOf(found);
      const fit = fuzzyFit(query, file);
      if (fit !== undefined) found.push({ root, file, ...fit });
      if (found.length >= MAX_UNSORTED) found = bestOf(found);
    }
  }
  return bestOf(found);
}

function bestOf(found: readonly RankedFile[]): RankedFile[] {
  return found
    .toSorted((a, b) => b.score - a.score || a.file.length - b.file.length || (a.file < b.file ? -1 : 1))
    .slice(0, MAX_RESULTS);
}
