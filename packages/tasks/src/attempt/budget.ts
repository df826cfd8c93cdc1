/** Time, turns, tokens and money of a task, over all its attempts. Time counts only while turns and checks run. */
import { budgetOf, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import type { EventOf, HeddleError, TurnLimits } from "@heddle/protocol";
import { DEFAULT_TOKENS } from "@heddle/protocol/tasks";

type What = EventOf<"task.budget-warned">["what"];

interface Line {
  readonly what: What;
  readonly spent: number;
  readonly limit: number;
}

/** From this share on, a budget is reported as running low. */
const WARNING_SHARE = 0.8;

export function usedUp(task: TaskRecord): Line | undefined {
  return linesOf(task).find(({ spent, limit }) => spent >= limit);
}

export function warnings(task: TaskRecord): TaskEventBody[] {
  return linesOf(task)
    .filter(({ what, spent, limit }) => spent >= WARNING_SHARE * limit && !task.warned.includes(what))
    .map((line) => ({ type: "task.budget-warned", v: 1, ...line }));
}

export function describe({ what, spent, limit }: Line): string {
  switch (what) {
    case "time":
      return `its time is used up: ${seconds(spent)} of ${seconds(limit)}`;
    case "cost":
      return `its cost limit is used up: $${spent.toFixed(4)} of $${limit}`;
    case "turns":
    case "tokens":
      return `its ${what} are used up: ${spent} of ${limit}`;
  }
}

/** How to resume a task whose budget is used up; undefined: it has to be given nothing. */
export function resumeWithMore(task: TaskRecord): string | undefined {
  const reached = usedUp(task);
  return reached && `heddle task resume ${task.id} --more ${MORE[reached.what]}`;
}

const MORE: Readonly<Record<What, string>> = {
  time: "time=30m",
  turns: "turns=5",
  tokens: "tokens=500000",
  cost: "cost_usd=1",
};

export const BUDGET_NAMES: ReadonlySet<string> = new Set(["timeMs", "turns", "tokens", "costUsd"]);

/** What one turn may use of the rest, so that it ends before the budget does. */
export function limitsOf(task: TaskRecord): TurnLimits {
  const { tokens, costUsd } = budgetOf(task);
  return {
    maxTokens: Math.max(1, tokens - task.spent.tokens),
    ...(costUsd === undefined ? {} : { maxCostUsd: Math.max(0.000_001, costUsd - task.spent.costUsd) }),
  };
}

/**
 * In place of limits that a turn was refused with, because its runner cannot be limited in its tokens: without the limit that
 * nobody has named. What the runner tells of its use at the end of a turn still counts. Undefined: the refusal stands.
 */
export function unnamedLimits(error: HeddleError, task: TaskRecord, limits: TurnLimits): TurnLimits | undefined {
  const { maxTokens, ...others } = limits;
  const isOfTokens = error.code === "runner.unsupported" && error.details?.["ability"] === "usage";
  return isOfTokens && maxTokens !== undefined && budgetOf(task).tokens === DEFAULT_TOKENS ? others : undefined;
}

export function timeLeftMs(task: TaskRecord): number {
  return Math.max(0, budgetOf(task).timeMs - task.spent.timeMs);
}

function linesOf(task: TaskRecord): readonly Line[] {
  const { timeMs, turns, tokens, costUsd } = budgetOf(task);
  const { spent } = task;
  return [
    { what: "time", spent: spent.timeMs, limit: timeMs },
    { what: "turns", spent: spent.turns, limit: turns },
    { what: "tokens", spent: spent.tokens, limit: tokens },
    ...(costUsd === undefined ? [] : [{ what: "cost" as const, spent: spent.costUsd, limit: costUsd }]),
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(0)} s`;
}
