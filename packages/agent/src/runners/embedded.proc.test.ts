import { join } from "node:path";
import type { TestHeddleOptions } from "../../test/test-heddle.ts";
import { EVERY_ABILITY } from "./abilities.ts";
import { runnerSuite, type AgentStep } from "./runner.suite.ts";

const argsOf = ({ runs, asksOut }: Extract<AgentStep, { runs: string }>): Record<string, unknown> => ({
  cmd: runs,
  ...(asksOut === true ? { sandbox_permissions: "require_escalated", justification: "it has to" } : {}),
});

const script = (steps: readonly AgentStep[]): NonNullable<TestHeddleOptions["script"]> =>
  steps.map((step) =>
    "says" in step ? { text: step.says } : { calls: [{ tool: "exec_command", args: argsOf(step) }] },
  );

runnerSuite({
  name: "embedded",
  capabilities: EVERY_ABILITY,
  options: (steps) => ({ script: script(steps) }),
  inChild: (folder, steps) => [
    "--conditions=heddle-source",
    join(import.meta.dirname, "../../test/killed-in-child.ts"),
    folder,
    JSON.stringify(script(steps)),
  ],
});
