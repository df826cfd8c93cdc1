/** What Codex does and Heddle does not do yet, each with `isGap`. An entry is a defect until it is gone from here. */
import type { Difference } from "../differences.ts";

export const GAPS: readonly Difference[] = [];
