/** What the demo's scripted model says and calls: a plain repair, step by step. The tools it calls are real. */
import type { ProviderConfig } from "@heddle/models";
import { BUGGY_LINE, FIXED_LINE, SOURCE_FILE, TEST_COMMAND, TEST_FILE } from "./workspace.ts";

const PATCH = `*** Begin Patch
*** Update File: ${SOURCE_FILE}
@@
-${BUGGY_LINE}
+${FIXED_LINE}
*** End Patch`;

const runTests = { tool: "exec_command", args: { cmd: TEST_COMMAND.join(" ") } };

export const DEMO_SCRIPT: NonNullable<ProviderConfig["script"]> = [
  { text: "I run the test first, to see how it fails.", calls: [runTests] },
  {
    text: "The seconds are wrong as soon as there are minutes. I look at the code.",
    calls: [{ tool: "exec_command", args: { cmd: `cat ${SOURCE_FILE}` } }],
  },
  {
    text: "`total % 3600` keeps the minutes inside the seconds; it has to be `total % 60`.",
    calls: [{ tool: "apply_patch", args: PATCH }],
  },
  { text: "Now the test again.", calls: [runTests] },
  {
    text: `The seconds were taken from the rest of the hour instead of the rest of the minute. I changed one line in ${SOURCE_FILE}; the test in ${TEST_FILE} is untouched and passes.`,
  },
];
