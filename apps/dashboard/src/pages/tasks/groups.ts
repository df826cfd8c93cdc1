/** Which tasks stand together, and what is said about each in one line. Pure. */
import type { TaskSummary } from "@heddle/protocol/http";
import { standingOf, wordsOf } from "@heddle/protocol/task-words";
import { line } from "../../text/shown.ts";
import { fullTime } from "../../words/figures.ts";

export type Need = "you" | "running" | "queue" | "unproven" | "ended";
export const NEEDS: Readonly<Record<Need, string>> = {
  you: "Needs you",
  running: "Running",
  queue: "In the queue",
  unproven: "Not proven",
  ended: "Ended",
};

export function needOf(task: TaskSummary): Need {
  if (task.isStalled || wordsOf(task).tone === "yours") return "you";
  switch (task.state) {
    case "paused":
    case "stalled":
      return "you";
    case "running":
    case "rejected":
      return "running";
    case "pending":
    case "waiting":
      return "queue";
    case "claimed":
      return task.checks.all > 0 ? "running" : "unproven";
    case "failed":
      return "unproven";
    case "verified":
    case "cancelled":
    case "archived":
      return "ended";
  }
}

/** The one line that matters, under the name. */
export function lineOf(task: TaskSummary): string {
  if (task.stall !== undefined) return line(task.stall.message);
  if (task.state === "running" && task.activity?.text !== undefined) return line(task.activity.text);
  const waitsFor = task.dependsOn.filter(({ state }) => state !== "verified").map(({ name }) => line(name));
  if (task.state === "waiting" && waitsFor.length > 0) return `when ${waitsFor.join(", ")} is done`;
  if (task.state === "claimed" && task.claim !== undefined) return `“${line(task.claim.summary)}”`;
  if (task.state === "verified") return `${task.checks.passed} of ${task.checks.all} checks passed`;
  if (task.state === "running" && task.checks.failed > 0)
    return `${task.checks.failed} of ${task.checks.all} checks failed when they ran last`;
  return line(standingOf(task, fullTime));
}

export type Pip = "ok" | "okvac" | "pass" | "vac" | "no" | "bad" | "open";

/** One for each check of the spec: green only when the whole is verified, hollow what has not run. */
export function pipsOf({ state, checks }: Pick<TaskSummary, "state" | "checks">): readonly Pip[] {
  const isProven = state === "verified";
  const { all, passed, failed, errors, vacuous, violations } = checks;
  const solid = Math.max(0, passed - vacuous);
  const open = Math.max(0, all - passed - failed - errors);
  return [
    ...Array<Pip>(failed + errors).fill("no"),
    ...Array<Pip>(solid).fill(isProven ? "ok" : "pass"),
    ...Array<Pip>(Math.min(vacuous, passed)).fill(isProven ? "okvac" : "vac"),
    ...Array<Pip>(open).fill("open"),
    ...Array<Pip>(violations).fill("bad"),
  ];
}

export function checksText({ checks }: Pick<TaskSummary, "checks">): string {
  if (checks.all === 0) return "no checks";
  if (checks.at === undefined) return "not run";
  if (checks.violations > 0) return checks.violations === 1 ? "a violation" : `${checks.violations} violations`;
  return `${checks.passed} of ${checks.all}`;
}

export interface Limit {
  readonly name: string;
  readonly share: number;
}

/** The budget that ends first, at this rate of use. */
export function nearestLimit({ spent, budget }: Pick<TaskSummary, "spent" | "budget">): Limit {
  const limits: readonly Limit[] = [
    { name: "turns", share: spent.turns / budget.turns },
    { name: "tokens", share: spent.tokens / budget.tokens },
    { name: "time", share: spent.timeMs / budget.timeMs },
    ...(budget.costUsd === undefined ? [] : [{ name: "money", share: spent.costUsd / budget.costUsd }]),
  ];
  return limits.reduce((most, limit) => (limit.share > most.share ? limit : most));
}
