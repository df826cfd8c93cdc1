/**
 * What the demo's scripted model says and calls: first it claims what it has not done, then it does it, and on the way it
 * starts something that hangs. The tools it calls are real, and so is everything that watches over them.
 */
import type { ProviderConfig } from "@heddle/models";
import { ASKING_SCRIPT, BUGGY_LINE, FIXED_LINE, SOURCE_FILE, TEST_COMMAND, TEST_FILE } from "./workspace.ts";

const PATCH = `*** Begin Patch
*** Update File: ${SOURCE_FILE}
@@
-${BUGGY_LINE}
+${FIXED_LINE}
*** End Patch`;

const shell = (cmd: string): { tool: string; args: { cmd: string } } => ({ tool: "exec_command", args: { cmd } });
const done = (summary: string): { tool: string; args: { status: string; summary: string } } => ({
  tool: "task_report",
  args: { status: "done", summary },
});

export const DEMO_SCRIPT: NonNullable<ProviderConfig["script"]> = [
  { text: "I look at the code.", calls: [shell(`cat ${SOURCE_FILE}`)] },
  {
    text: "The seconds are taken from the rest of the hour. That is an easy one, all tests pass now.",
    calls: [done("fixed the seconds, all tests pass")],
  },
  { text: "The task is complete." },
  {
    text: "The check is right: I changed nothing. `total % 3600` keeps the minutes inside the seconds; it has to be `total % 60`.",
    calls: [{ tool: "apply_patch", args: PATCH }],
  },
  {
    text: "While I am at it, I try the release script.",
    calls: [{ tool: "exec_command", args: { cmd: `sh ${ASKING_SCRIPT}`, tty: true, yield_time_ms: 30_000 } }],
  },
  {
    text: "It waited for an answer and was killed; that is not my task. I run the test before I say anything.",
    calls: [shell(TEST_COMMAND)],
  },
  {
    text: `One line of ${SOURCE_FILE} is changed, ${TEST_FILE} is untouched, and the test passes.`,
    calls: [done("the seconds are the rest of the minute now; the test passes")],
  },
  { text: "Done." },
];
