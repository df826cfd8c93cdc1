/** From tasks and their events to what clients are shown. */
import type { Journal, NotificationRow } from "@heddle/journal";
import {
  addUsage,
  checkRunOf,
  hasEnded,
  HeddleError,
  NO_USAGE,
  type StoredEvent,
  type TaskRecord,
} from "@heddle/protocol";
import type { CheckRun, CreatedTask, Notification, SinkEntry, Task, TaskAttempt } from "@heddle/protocol/http";
import type { Sink, TakenOrder } from "@heddle/tasks";
import type { z } from "zod";
import { defined } from "@heddle/protocol";
import { eventsAfter } from "./views.ts";

export async function requireTask(journal: Journal, taskId: string): Promise<TaskRecord> {
  const task = await journal.tasks.get(taskId);
  if (task === undefined) throw new HeddleError("task.not-found", `there is no task ${taskId}`);
  return task;
}

/** Without what only workers go on from. */
export function taskView(task: TaskRecord): z.output<typeof Task> {
  const { version, holder: _holder, openPrompt: _prompt, firstAt: _first, warned: _warned, ...rest } = task;
  const { userInput: _input, faults: _faults, ...shown } = rest;
  return { ...shown, seq: version, hasEnded: hasEnded(task) };
}

/** With what it took over from: earlier tasks of its thread. */
export async function createdView(
  journal: Journal,
  { task, warnings }: TakenOrder,
): Promise<z.output<typeof CreatedTask>> {
  const [first] = await journal.read({ stream: task.id, after: 0, limit: 1 });
  const replaces = first?.body.type === "task.created" ? (first.body.replaces ?? []) : [];
  return { ...taskView(task), warnings, replaces };
}

export async function checkRuns(journal: Journal, taskId: string): Promise<z.output<typeof CheckRun>[]> {
  const runs: z.output<typeof CheckRun>[] = [];
  for await (const { body, at } of eventsAfter(journal, taskId, 0, ["task.checked"])) {
    if (body.type === "task.checked") runs.push(checkRunOf(body, at));
  }
  return runs;
}

type Attempt = z.output<typeof TaskAttempt>;

export async function attemptsOf(journal: Journal, taskId: string): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  for await (const event of eventsAfter(journal, taskId, 0)) {
    const { body, at } = event;
    if (body.type === "task.taken") {
      const begun = { attempt: body.attempt, startedAt: at, prompts: [], turns: 0, usage: NO_USAGE, costUsd: 0 };
      const known = attempts.find(({ attempt }) => attempt === body.attempt);
      if (known === undefined) attempts.push(begun);
      continue;
    }
    const index = attempts.length - 1;
    const last = attempts[index];
    if (last !== undefined) attempts[index] = foldAttempt(last, event);
  }
  return attempts;
}

function foldAttempt(attempt: Attempt, { body, at }: StoredEvent): Attempt {
  switch (body.type) {
    case "task.prepared":
      return { ...attempt, threadId: body.threadId, folder: body.folder };
    case "task.prompted": {
      const { round, why, text } = body;
      return { ...attempt, prompts: [...attempt.prompts, { round, at, why, text }] };
    }
    case "task.turn-ended": {
      const { costUsd: before, ...rest } = attempt;
      const cost = before === undefined || body.costUsd === undefined ? {} : { costUsd: before + body.costUsd };
      return { ...rest, turns: attempt.turns + 1, usage: addUsage(attempt.usage, body.usage), ...cost };
    }
    case "task.verified":
      return { ...attempt, endedAt: at, outcome: "verified" };
    case "task.failed":
      return { ...attempt, endedAt: at, outcome: "failed", message: body.failure.message };
    case "task.retried":
      return attempt.endedAt === undefined
        ? { ...attempt, endedAt: at, outcome: "retried", message: body.failure?.message ?? body.reason }
        : attempt;
    case "task.cancelled":
      return attempt.endedAt === undefined
        ? { ...attempt, endedAt: at, outcome: "cancelled", message: body.reason }
        : attempt;
    default:
      return attempt;
  }
}

export function notificationView(row: NotificationRow): z.output<typeof Notification> {
  const { position: _position, ...shown } = row;
  return defined(shown);
}

export async function sinkEntries(journal: Journal, sinks: readonly Sink[]): Promise<z.output<typeof SinkEntry>[]> {
  const counts = await journal.notifications.counts();
  const countOf = (name: string, state: NotificationRow["state"]): number =>
    counts.find((row) => row.sink === name && row.state === state)?.count ?? 0;
  return sinks.map(({ name, kind, target, events }) => ({
    name,
    kind,
    target,
    events: [...events],
    queued: countOf(name, "queued"),
    delivered: countOf(name, "delivered"),
    dead: countOf(name, "dead"),
  }));
}
