/** Adding up what a turn spends. One unknown price makes the sum unknown: a guess would look like a fact. */
import { addUsage, NO_USAGE } from "@heddle/protocol";
import type { Spent } from "../runners/runner.ts";

export const NOTHING_SPENT: Spent = { usage: NO_USAGE, costUsd: 0 };

export function addSpent(a: Spent, b: Spent): Spent {
  const usage = addUsage(a.usage, b.usage);
  return a.costUsd === undefined || b.costUsd === undefined ? { usage } : { usage, costUsd: a.costUsd + b.costUsd };
}
