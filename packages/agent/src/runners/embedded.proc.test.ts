import { join } from "node:path";
import type { TestHeddleOptions } from "../../test/test-heddle.ts";
import { runnerSuite, type AgentStep } from "./runner.suite.ts";

const script = (steps: readonly AgentStep[]): NonNullable<TestHeddleOptions["script"]> =>
  steps.map((step) =>
    "says" in step ? { text: step.says } : { calls: [{ tool: "exec_command", args: { cmd: step.runs } }] },
  );

runnerSuite({
  name: "embedded",
  options: (steps) => ({ script: script(steps) }),
  inChild: (folder, steps) => [
    "--conditions=heddle-source",
    join(import.meta.dirname, "../../test/killed-in-child.ts"),
    folder,
    JSON.stringify(script(steps)),
  ],
});
