import { expect, test } from "vitest";
import { shownMessage } from "./bodies.ts";

test("a notification ends with the command that takes the thread over, where there is one", () => {
  const shown = (data: object) =>
    shownMessage({ id: "n", event: "PERMISSION_WAITING", payload: { task_id: "task_1", task_name: "fix it", data } });
  const takeover = { command: "heddle attach 01a1ddef", program: ["claude", "--resume", "h"], folder: "/work" };
  expect(shown({ summary: "wants to run make", takeover }).lines).toEqual([
    "wants to run make",
    "task_1",
    "take over: heddle attach 01a1ddef",
  ]);
  expect(shown({ summary: "wants to run make" }).lines).toEqual(["wants to run make", "task_1"]);
});
