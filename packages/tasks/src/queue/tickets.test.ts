import { afterEvents, type TaskEventBody, type TaskRecord } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { ticketsOf } from "./tickets.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const spec = TaskSpec.parse({ name: "t", workspace: "/w", goal: "g", priority: 3 });
const created: TaskEventBody = { type: "task.created", v: 1, spec, source: { kind: "cli" } };
const taken: TaskEventBody = { type: "task.taken", v: 1, attempt: 1, holder };
const given: TaskEventBody = { type: "task.retried", v: 1, attempt: 1, reason: "given back", notBefore: 900 };
const waits: TaskEventBody = { type: "task.waited", v: 1, cause: "dependency", message: "waits" };
const ticket = { queue: "tasks", ticket: "1" };

const after = (before: TaskRecord | undefined, event: TaskEventBody, at: number) =>
  afterEvents(before, "task_1", [event], at);
const send = (notBefore: number) => ({ kind: "send", queue: "tasks", subject: "task_1", notBefore, priority: 3 });

test("19.3: a ticket is sent whenever a task comes due anew, and done by the append of the worker that it led there", () => {
  const fresh = after(undefined, created, 100);
  expect(ticketsOf(undefined, fresh)).toEqual([send(100)]);
  const held = after(fresh, taken, 200);
  expect(ticketsOf(fresh, held, ticket)).toEqual([{ kind: "done", ...ticket }]);
  expect(ticketsOf(fresh, held)).toEqual([]);
  const back = after(held, given, 300);
  expect(ticketsOf(held, back)).toEqual([send(900)]);
  const waiting = after(fresh, waits, 300);
  expect(ticketsOf(fresh, waiting, ticket)).toEqual([{ kind: "done", ...ticket }]);
  expect(ticketsOf(waiting, after(waiting, { type: "task.woken", v: 1 }, 400))).toEqual([send(400)]);
  const sooner = after(back, { ...waits, cause: "schedule", until: 500 }, 300);
  expect(ticketsOf(back, sooner)).toEqual([send(500)]);
  expect(ticketsOf(back, { ...back, version: 9 })).toEqual([]);
  // Its own ticket was delivered, so there is none left for a task that is still due.
  expect(ticketsOf(back, { ...back, version: 9 }, ticket)).toEqual([{ kind: "done", ...ticket }, send(900)]);
});
