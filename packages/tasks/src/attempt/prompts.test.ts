import { afterEvents, type TaskEventBody } from "@heddle/protocol";
import { TaskSpec } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { promptText } from "./prompts.ts";

const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };
const spec = TaskSpec.parse({ name: "t", workspace: "/w", goal: "g" });
const created: TaskEventBody = { type: "task.created", v: 1, spec, source: { kind: "cli" } };
const paused: TaskEventBody = { type: "task.paused", v: 1, cause: "question", message: "which port?" };
const resumed = (input: string): TaskEventBody => ({ type: "task.resumed", v: 1, input });

test("the next prompt begins with what the user answered, once", () => {
  const asked = afterEvents(
    undefined,
    "task_1",
    [created, paused, resumed("8080"), paused, resumed("on all hosts")],
    7,
  );
  expect(promptText(asked, "resumed")).toMatch(/^8080\n\non all hosts\n\nThe task was paused and is resumed now\./);
  const attempt = 1;
  const prompted = afterEvents(
    asked,
    "task_1",
    [
      { type: "task.taken", v: 1, attempt, holder },
      { type: "task.prompted", v: 1, attempt, round: 1, clientId: "c", why: "resumed", text: "" },
    ],
    8,
  );
  expect(promptText(prompted, "continue")).not.toContain("8080");
});

test("a task says why and since when it is paused, and only while it is", () => {
  const task = afterEvents(undefined, "task_1", [created, paused], 7);
  expect(task).toMatchObject({ reason: "which port?", pause: { cause: "question", at: 7 } });
  for (const next of [resumed("8080"), { type: "task.cancelled", v: 1, reason: "no" } as const]) {
    expect(afterEvents(task, "task_1", [next], 8)).not.toHaveProperty("pause");
  }
});
