/** Why an event may not follow in the stream of a task: what a user asked for in plain words, with the command that helps. */
import { HeddleError } from "../errors.ts";
import type { TaskRecord } from "./task-record.ts";

export function refused(task: TaskRecord, body: Refused): HeddleError {
  const { type } = body;
  const asked = wordFor(body);
  const what = `task ${task.id}`;
  if (asked === undefined) return illegal(`${what}, which is ${task.state}`, type);
  if (asked === task.state) return refusal(`${what} is ${task.state} already`, type);
  return refusal(`${what} is ${task.state} and cannot be ${asked}${wayOut(task, asked)}`, type);
}

export function illegal(what: string, type: string): HeddleError {
  return refusal(`${type} does not fit ${what}`, type);
}

interface Refused {
  readonly type: string;
  readonly isArchived?: boolean;
  readonly deliver?: readonly string[] | undefined;
  readonly cause?: string;
}

function wordFor({ type, isArchived, deliver, cause = "user" }: Refused): string | undefined {
  if (isArchived === false) return "restored";
  if (cause !== "user") return undefined;
  return deliver === undefined ? ASKED.get(type) : "accepted";
}

/** Users ask for these; all others are recorded by a worker. */
const ASKED: ReadonlyMap<string, string> = new Map([
  ["task.paused", "paused"],
  ["task.resumed", "resumed"],
  ["task.cancelled", "cancelled"],
  ["task.retried", "tried again"],
  ["task.archived", "archived"],
  ["task.deleted", "deleted"],
]);
const ENDED: ReadonlySet<TaskRecord["state"]> = new Set(["failed", "cancelled"]);

function wayOut({ id, state }: TaskRecord, asked: string): string {
  if (asked === "resumed" && ENDED.has(state)) return `; begin it again: heddle task retry ${id}`;
  if (state === "archived") return `; first restore it: heddle task archive ${id} --back`;
  const hasToEnd = asked === "deleted" || asked === "archived";
  return hasToEnd ? `; first end it: heddle task cancel ${id}` : "";
}

function refusal(message: string, event: string): HeddleError {
  return new HeddleError("task.illegal", message, { details: { event } });
}
