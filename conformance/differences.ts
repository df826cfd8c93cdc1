/**
 * Differences of single cases that are meant, from differences.json. Both sides are pinned, so that a difference that
 * changes is noticed; one that is not there fails, and so does one that no longer happens or has no reason.
 */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Found } from "./compare.ts";

export interface Difference {
  readonly case: string;
  readonly why: string;
  readonly found: readonly Found[];
}

const FILE = path.join(import.meta.dirname, "differences.json");

export const DIFFERENCES: readonly Difference[] = JSON.parse(readFileSync(FILE, "utf8"));

/** Pins what was seen now, in the order of the cases. One that was not listed gets an entry without a reason. */
export function pinDifferences(
  seen: readonly { readonly id: string; readonly found: readonly Found[] }[],
  order: readonly string[],
): void {
  const pinned = seen.flatMap(({ id, found }): Difference[] => {
    const why = DIFFERENCES.find((difference) => difference.case === id)?.why ?? "";
    return found.length === 0 ? [] : [{ case: id, why, found }];
  });
  const others = DIFFERENCES.filter((difference) => !seen.some(({ id }) => id === difference.case));
  const all = [...pinned, ...others].toSorted((a, b) => order.indexOf(a.case) - order.indexOf(b.case));
  writeFileSync(FILE, `${JSON.stringify(all, undefined, 2)}\n`);
}
