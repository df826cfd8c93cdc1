/** Rows of lists of tasks: from the tables alone, so that a page costs the same however long the threads are. */
import type { Journal, OpenItemRow } from "@heddle/journal";
import { budgetOf, defined, type TaskRecord } from "@heddle/protocol";
import type { TaskSummary } from "@heddle/protocol/http";
import type { z } from "zod";

type Summary = z.output<typeof TaskSummary>;

export async function taskSummaries(journal: Journal, tasks: readonly TaskRecord[]): Promise<Summary[]> {
  const active = tasks.flatMap(({ holder, threadId }) => (holder === undefined || !threadId ? [] : [threadId]));
  const words = [...new Set(tasks.flatMap(({ spec }) => spec.dependsOn))];
  const items = active.length === 0 ? [] : await journal.threads.openItems(active);
  const meant = words.length === 0 ? [] : await journal.tasks.meant(words);
  const known = new Map(meant.map(({ word, id, state }) => [word, { id, state }]));
  return tasks.map((task) => ({
    ...summaryOf(task),
    // What began last is what it does now.
    ...defined({ activity: activityOf(items.findLast(({ threadId }) => threadId === task.threadId)) }),
    dependsOn: task.spec.dependsOn.map((name) => ({ name, ...known.get(name) })),
  }));
}

function summaryOf(task: TaskRecord): Omit<Summary, "activity" | "dependsOn"> {
  const { id, state, source, createdAt, updatedAt, attempt, spent, parentId, threadId, nextAt, wait, reason } = task;
  const { name, workspace, labels, priority, steps, model, runner } = task.spec;
  const known = { id, name, state, workspace, labels, priority, source, createdAt, updatedAt, attempt, spent };
  const stall = task.stall?.isOpen === true ? task.stall : undefined;
  return {
    ...known,
    ...defined({ parentId, threadId, nextAt, wait, reason, passedLastCheck: task.lastCheck?.passed }),
    ...defined({ contestant: task.contestant, pause: task.pause, claim: task.claim, model, runner }),
    steps: { done: task.stepsDone.length, all: steps.length },
    isStalled: stall !== undefined,
    ...(stall === undefined ? {} : { stall: stallOf(stall) }),
    budget: budgetOf(task),
    checks: checksOf(task),
  };
}

function stallOf({ message, since, culprits }: NonNullable<TaskRecord["stall"]>): NonNullable<Summary["stall"]> {
  return { message, since, ...defined({ culprit: culprits[0]?.command }) };
}

function checksOf({ spec, lastCheck }: TaskRecord): Summary["checks"] {
  const results = lastCheck?.results ?? [];
  const count = (outcome: (typeof results)[number]["outcome"]): number =>
    results.filter((result) => result.outcome === outcome).length;
  return {
    all: spec.checks.length,
    passed: count("passed"),
    failed: count("failed"),
    errors: count("error"),
    vacuous: results.filter(({ isVacuous, outcome }) => isVacuous === true && outcome === "passed").length,
    violations: lastCheck?.violations.length ?? 0,
    ...defined({ at: lastCheck?.at }),
  };
}

function activityOf(item: OpenItemRow | undefined): Summary["activity"] {
  if (item === undefined) return undefined;
  const { itemId, type, text, startedAt, outputAt } = item;
  return { itemId, kind: type, since: startedAt, ...defined({ text, lastOutputAt: outputAt }) };
}
