/** What both ways to drive Codex have in common. */
import path from "node:path";
import { KEY_NAME, MOCK_CONFIG, command, patch } from "../exec-case.ts";
import { codex } from "../program.ts";
import { spoken, type Subject } from "./subject.ts";

export const codexSubject: Omit<Subject, "name" | "protocol"> = {
  package: "@openai/codex",
  file: path.relative(path.join(import.meta.dirname, "..", "node_modules"), codex().file),
  setUp: ({ url }) => ({
    runner: { env: [KEY_NAME], hosts: [new URL(url).host] },
    env: { [KEY_NAME]: "test-key" },
    files: { "codex/config.toml": MOCK_CONFIG.replaceAll("{url}", url) },
  }),
  step(step) {
    if ("says" in step) return spoken(step);
    if ("writes" in step)
      return patch(
        `*** Add File: ${step.writes}`,
        ...step.content
          .split("\n")
          .slice(0, -1)
          .map((line) => `+${line}`),
      );
    if ("runs" in step) return command(step.runs);
    return command(step.forces, { sandbox_permissions: "require_escalated", justification: "told to" });
  },
  isOfTurn: ({ source }) => source.includes('"exec_command"'),
};
