/**
 * What a contest does next, from how its contestants stand. Pure: the same standings give the same act, whoever asks and
 * however often. Nobody is picked who is not verified, and nobody by a score that could not be taken.
 */
import type { ContestMeasure, ContestPick, ContestRow, TaskSpec } from "@heddle/protocol/tasks";

export interface Measured {
  readonly size?: NonNullable<ContestRow["size"]>;
  /** Only where the spec has a score. */
  readonly score?: { readonly value: number } | { readonly problem: string };
}

export interface Standing {
  readonly number: number;
  readonly name: string;
  readonly taskId: string;
  /** Of its task. */
  readonly state: string;
  /**
   * `held`: the user paused it, or its work is put to the user. `stopped`: it has ended, or stopped by itself, unverified.
   */
  readonly stands: "under-way" | "held" | "stopped" | "verified";
  readonly why: string;
  /** The position of its verdict in the journal: of two, one is always earlier. */
  readonly verifiedAt?: number;
  readonly costUsd?: number;
  readonly isCostPartial: boolean;
  readonly timeMs: number;
  readonly turns: number;
  readonly tokens: number;
  readonly branch?: string;
  /** Absent: not yet. */
  readonly measured?: Measured;
}

export interface ContestCase {
  readonly pick: ContestPick;
  readonly order: readonly ContestMeasure[];
  readonly standings: readonly Standing[];
  /** Verified by themselves, and refused when their work was judged for the contest. */
  readonly refused: readonly number[];
}

export type ContestAct =
  /** `isStuck`: until the user does something. */
  | { readonly kind: "wait"; readonly message: string; readonly isStuck: boolean }
  | { readonly kind: "measure"; readonly numbers: readonly number[] }
  | { readonly kind: "pick"; readonly number: number; readonly reason: string; readonly rows: readonly ContestRow[] }
  | { readonly kind: "nobody"; readonly reason: string; readonly rows: readonly ContestRow[] };

export function pickOf({ pick = "first-verified" }: Pick<TaskSpec, "pick">): ContestPick {
  return pick;
}

const DEFAULT_ORDER: readonly ContestMeasure[] = ["lines", "cost", "time"];

export function orderOf({ order, score }: Pick<TaskSpec, "order" | "score">): readonly ContestMeasure[] {
  return order ?? (score === undefined ? DEFAULT_ORDER : ["score", ...DEFAULT_ORDER]);
}

export function decide(contest: ContestCase): ContestAct {
  const { pick, standings } = contest;
  const candidates = candidatesOf(contest);
  const running = standings.filter(({ stands }) => stands === "under-way");
  const held = standings.filter(({ stands }) => stands === "held");
  if (running.length > 0 && (pick === "best" || candidates.length === 0)) return waitFor(running);
  // The user is waited for only where nobody else has done it.
  if (held.length > 0 && candidates.length === 0) return waitForUser(held);
  const wanted = pick === "best" ? candidates : candidates.slice(0, 1);
  const unmeasured = wanted.filter(({ measured }) => measured === undefined).map(({ number }) => number);
  if (unmeasured.length > 0) return { kind: "measure", numbers: unmeasured };
  const best = rankedOf(contest).find((one) => mayBePicked(one, contest));
  if (best === undefined) return { kind: "nobody", reason: nobody(contest), rows: rowsOf(contest) };
  const reason = reasonOf(contest);
  return { kind: "pick", number: best.number, reason, rows: rowsOf(contest, { number: best.number, reason }) };
}

/** As a table, in the order of the spec. */
export function rowsOf(
  contest: ContestCase,
  picked?: { readonly number: number; readonly reason: string },
): readonly ContestRow[] {
  const ranks = new Map(rankedOf(contest).map(({ number }, index) => [number, index + 1]));
  return contest.standings.map((one): ContestRow => {
    const { number, name, taskId, state, costUsd, isCostPartial, timeMs, turns, tokens, branch, measured } = one;
    const isPicked = number === picked?.number;
    const rank = ranks.get(number);
    const score = measured?.score !== undefined && "value" in measured.score ? measured.score.value : undefined;
    return {
      number,
      name,
      taskId,
      state,
      isVerified: one.stands === "verified",
      isPicked,
      why: isPicked && picked !== undefined ? picked.reason : whyNot(one, contest),
      ...(rank === undefined ? {} : { rank }),
      ...(costUsd === undefined ? {} : { costUsd }),
      isCostPartial,
      timeMs,
      turns,
      tokens,
      ...(measured?.size === undefined ? {} : { size: measured.size }),
      ...(score === undefined ? {} : { score }),
      ...(branch === undefined ? {} : { branch }),
    };
  });
}

/** Verified, the earliest verdict first. */
function candidatesOf({ standings, refused }: ContestCase): readonly Standing[] {
  return standings
    .filter(({ stands, number }) => stands === "verified" && !refused.includes(number))
    .toSorted((a, b) => (a.verifiedAt ?? 0) - (b.verifiedAt ?? 0) || a.number - b.number);
}

/** The best first; of equals the one that the spec names first. */
function rankedOf(contest: ContestCase): readonly Standing[] {
  const candidates = candidatesOf(contest);
  if (contest.pick === "first-verified") return candidates;
  return candidates.toSorted((a, b) => {
    for (const measure of contest.order) {
      const difference = COMPARE[measure](a, b);
      if (difference !== 0) return difference;
    }
    return a.number - b.number;
  });
}

/** What is not known comes after everything that is. */
const COMPARE: Readonly<Record<ContestMeasure, (a: Standing, b: Standing) => number>> = {
  score: (a, b) => ascending(negative(scoreOf(a)), negative(scoreOf(b))),
  lines: (a, b) => ascending(linesOf(a), linesOf(b)) || ascending(a.measured?.size?.files, b.measured?.size?.files),
  cost: (a, b) => ascending(knownCost(a), knownCost(b)),
  time: (a, b) => a.timeMs - b.timeMs,
};

function ascending(a: number | undefined, b: number | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  return a - b;
}

function negative(value: number | undefined): number | undefined {
  return value === undefined ? undefined : -value;
}

function scoreOf({ measured }: Standing): number | undefined {
  return measured?.score !== undefined && "value" in measured.score ? measured.score.value : undefined;
}

function linesOf({ measured }: Standing): number | undefined {
  return measured?.size === undefined ? undefined : measured.size.added + measured.size.removed;
}

/** Of a cost with an unknown part only the least is known. */
function knownCost({ costUsd, isCostPartial }: Standing): number | undefined {
  return isCostPartial ? undefined : costUsd;
}

function mayBePicked(one: Standing, { pick, order }: ContestCase): boolean {
  return pick === "first-verified" || !order.includes("score") || scoreOf(one) !== undefined;
}

function waitFor(running: readonly Standing[]): ContestAct {
  return { kind: "wait", message: `waits for its contestants: ${shown(running)}`, isStuck: false };
}

function waitForUser(held: readonly Standing[]): ContestAct {
  const tasks = held.map(({ number, name, taskId, why }) => `${number} ${name} (${taskId}: ${why})`).join("; ");
  return { kind: "wait", message: `waits for the user: ${tasks}; accept, resume or cancel them`, isStuck: true };
}

function shown(some: readonly Standing[]): string {
  return some.map(({ number, name }) => `${number} ${name}`).join(", ");
}

function reasonOf(contest: ContestCase): string {
  if (contest.pick === "first-verified") return "the first that was verified";
  const verified = candidatesOf(contest).length;
  if (verified === 1) return "the only one that was verified";
  return `the best of ${verified} verified by ${contest.order.join(", then ")}`;
}

function whyNot(one: Standing, contest: ContestCase): string {
  if (one.stands !== "verified") return one.why;
  if (contest.refused.includes(one.number)) return "verified by itself, but not when it was judged for the contest";
  const { measured } = one;
  if (measured?.score !== undefined && "problem" in measured.score)
    return `verified, but its score could not be taken: ${measured.score.problem}`;
  const index = rankedOf(contest).findIndex(({ number }) => number === one.number);
  return contest.pick === "first-verified"
    ? "verified, after another one"
    : `verified, rank ${index + 1} by ${contest.order.join(", then ")}`;
}

function nobody(contest: ContestCase): string {
  if (candidatesOf(contest).length > 0) return "no verified contestant could be scored";
  return contest.refused.length > 0
    ? "no contestant is verified when it is judged for the contest"
    : `none of the ${contest.standings.length} contestants is verified`;
}
