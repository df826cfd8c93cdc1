/**
 * Differences of single cases that are meant. Both sides are pinned, so that a difference that changes is noticed; one that
 * is not here fails, and so does one that no longer happens.
 */
import type { Found } from "./compare.ts";

export interface Difference {
  readonly case: string;
  readonly why: string;
  readonly found: readonly Found[];
}

export const DIFFERENCES: readonly Difference[] = [];
