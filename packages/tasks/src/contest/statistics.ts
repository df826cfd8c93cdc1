/** What many contests say of an agent: how often it was verified, with the interval that so few runs allow, cost and time. */
import type { ContestRow } from "@heddle/protocol/tasks";

export interface AgentResult {
  readonly name: string;
  /** That have come to rest. */
  readonly runs: number;
  readonly verified: number;
  /** Absent: no run has come to rest. */
  readonly rate?: number;
  /** Of 95 %, by Wilson's score. */
  readonly interval?: readonly [number, number];
  /** Of all runs, as far as it is known; absent: nothing of it is. */
  readonly costUsd?: number;
  /** It is more than that. */
  readonly isCostPartial: boolean;
  readonly timeMs: number;
  readonly turns: number;
  readonly tokens: number;
  /** That have not. */
  readonly open: number;
}

const AT_REST: ReadonlySet<string> = new Set([
  "verified",
  "paused",
  "failed",
  "cancelled",
  "claimed",
  "archived",
  "deleted",
]);

export function isAtRest({ state }: Pick<ContestRow, "state">): boolean {
  return AT_REST.has(state);
}

/** In the order in which agents first appear. */
export function resultsOf(rows: readonly ContestRow[]): readonly AgentResult[] {
  const byName = Map.groupBy(rows, ({ name }) => name);
  return [...byName].map(([name, all]): AgentResult => {
    const rested = all.filter(isAtRest);
    const verified = rested.filter(({ isVerified }) => isVerified).length;
    const sum = (of: (row: ContestRow) => number): number => rested.reduce((total, row) => total + of(row), 0);
    const known = rested.filter(({ costUsd }) => costUsd !== undefined);
    return {
      name,
      runs: rested.length,
      verified,
      ...(rested.length === 0
        ? {}
        : { rate: verified / rested.length, interval: wilsonInterval(verified, rested.length) }),
      ...(known.length === 0 ? {} : { costUsd: sum(({ costUsd = 0 }) => costUsd) }),
      isCostPartial: rested.some(({ isCostPartial }) => isCostPartial),
      timeMs: sum(({ timeMs }) => timeMs),
      turns: sum(({ turns }) => turns),
      tokens: sum(({ tokens }) => tokens),
      open: all.length - rested.length,
    };
  });
}

/** The quantile of the normal distribution for 95 %. */
const Z = 1.959963984540054;

export function wilsonInterval(successes: number, runs: number): readonly [number, number] {
  const rate = successes / runs;
  const scale = 1 + Z ** 2 / runs;
  const middle = (rate + Z ** 2 / (2 * runs)) / scale;
  const half = (Z / scale) * Math.sqrt((rate * (1 - rate)) / runs + Z ** 2 / (4 * runs ** 2));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}
