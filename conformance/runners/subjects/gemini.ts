/** Gemini CLI over ACP. */
import { spoken, type Subject } from "../subject.ts";

const KEY = "GEMINI_API_KEY";

export const subject: Subject = {
  name: "gemini",
  protocol: "acp",
  package: "@google/gemini-cli",
  file: "@google/gemini-cli/bundle/gemini.js",
  setUp: ({ url }) => ({
    runner: { env: [KEY], hosts: [new URL(url).host] },
    env: { GOOGLE_GEMINI_BASE_URL: url, [KEY]: "test-key" },
    files: {
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        // With a terminal of its own it shows no output of a command.
        tools: { shell: { enableInteractiveShell: false } },
      }),
    },
  }),
  // What it calls a load empties the record of the session before it looks for it.
  says: { resume: false },
  tellsNoExitCode: true,
  step(step) {
    if ("says" in step) return spoken(step);
    if ("writes" in step)
      return { calls: [{ tool: "write_file", args: { file_path: step.writes, content: step.content } }] };
    const command = "runs" in step ? step.runs : step.forces;
    return { calls: [{ tool: "run_shell_command", args: { command, description: "a step of the test" } }] };
  },
  isOfTurn: ({ source }) => source.includes('"name":"run_shell_command"'),
};
