/** A morning for the pictures: tasks with names of real work, in the states that a person finds them in after a night. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Task } from "@heddle/client";
import { comesTo, folderOf, order, orderQuestion, run } from "./orders.ts";
import type { Stage, Steps } from "./stage.ts";

const SOURCE = "src/duration.mjs";
const TEST = "test/duration.test.mjs";
const FILES: Readonly<Record<string, string>> = {
  [SOURCE]: `/** 3725 is "1:02:05". */
export function formatDuration(total) {
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor((total % 3600) / 60);
  const seconds = total % 3600;
  return [hours, minutes, seconds].map((part, at) => (at === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}
`,
  [TEST]: `import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration } from "../src/duration.mjs";

test("seconds alone", () => assert.equal(formatDuration(5), "0:00:05"));
test("minutes and seconds", () => assert.equal(formatDuration(125), "0:02:05"));
test("hours too", () => assert.equal(formatDuration(3725), "1:02:05"));
`,
};
const PATCH = `*** Begin Patch
*** Update File: ${SOURCE}
@@
-  const seconds = total % 3600;
+  const seconds = total % 60;
*** End Patch`;
const TEST_COMMAND = "node --test --test-reporter=tap test/duration.test.mjs";

const report = (summary: string) => ({ tool: "task_report", args: { status: "done", summary } });

/** Where the model answers at once there would be nothing to see in the picture of the time. */
function slowly(steps: Steps): Steps {
  return steps.map((step, at) => async () => {
    await wait(400 + ((at * 370) % 900));
    return typeof step === "function" ? await step() : step;
  });
}

const REJECTED_THEN_VERIFIED: Steps = slowly([
  { text: "I look at the code and its tests first.", calls: [run(`cat ${SOURCE}`), run(`cat ${TEST}`)] },
  { text: "The seconds are taken from the rest of the hour. That is an easy one.", calls: [run(TEST_COMMAND)] },
  { calls: [report("the seconds are fixed, all tests pass")] },
  { text: "The task is complete." },
  {
    text: "The check is right: I changed nothing. `total % 3600` keeps the minutes inside the seconds; it has to be `total % 60`.",
    calls: [{ tool: "apply_patch", args: PATCH }],
  },
  { text: "Now the tests, before I say anything.", calls: [run(TEST_COMMAND)] },
  { calls: [report("the seconds are the rest of the minute now; the tests pass")] },
  { text: `One line of ${SOURCE} is changed, the tests are untouched, and they pass.` },
]);

/** By a name for the picture, the address. */
export async function openMorning(stage: Stage): Promise<Readonly<Record<string, string>>> {
  const hero = await orderFix(stage);
  stage.plays("docs", slowly([{ calls: [run("ls src")] }, { text: "The module page describes every export." }]));
  const claimed = await order(stage, "docs", {
    name: "describe the modules",
    goal: "Describe every export. [[docs]]",
    checks: [],
  });
  await comesTo(stage, claimed.id, "claimed");
  stage.plays("search", slowly([{ calls: [run("ls")] }, { text: "The index is twice as fast." }]));
  const short = await order(stage, "search", { name: "speed up the search index", budget: { turns: 1 } });
  await comesTo(stage, short.id, "paused");
  const later = { name: "announce the release", depends_on: [short.id] };
  await comesTo(stage, (await order(stage, "announce", later)).id, "waiting");
  const dropped = await order(stage, "spinner", { name: "try another spinner", depends_on: [short.id] });
  await stage.server.client.tasks.cancel(dropped.id);
  const asking = await orderQuestion(stage, "upgrade", "npm install --save-exact undici@7.16.0");
  await comesTo(stage, asking.id, "waiting");
  return {
    now: "/now",
    tasks: "/tasks",
    run: `/tasks/${hero.id}`,
    threads: "/threads",
    evidence: "/evidence",
    usage: "/usage",
    settings: "/settings",
    new: "/new",
  };
}

async function orderFix(stage: Stage): Promise<Task> {
  const workspace = folderOf(stage, "player");
  for (const [file, content] of Object.entries(FILES)) {
    await mkdir(path.dirname(path.join(workspace, file)), { recursive: true });
    await writeFile(path.join(workspace, file), content);
  }
  stage.plays("player", REJECTED_THEN_VERIFIED);
  const { id } = await order(stage, "player", {
    name: "fix the durations",
    goal: "formatDuration(125) must be 0:02:05. Do not change the tests. [[player]]",
    deliver: [SOURCE],
    budget: { turns: 6, tokens: 200_000 },
    checks: [
      { name: "the tests pass", tests: TEST_COMMAND },
      { name: "the code has changed", changed: [SOURCE] },
    ],
  });
  return await comesTo(stage, id, "verified");
}
