/** Qwen Code over ACP. */
import { spoken, type Subject } from "../subject.ts";

const KEY = "OPENAI_API_KEY";

export const subject: Subject = {
  name: "qwen",
  protocol: "acp",
  package: "@qwen-code/qwen-code",
  file: "@qwen-code/qwen-code/cli-entry.js",
  setUp: ({ root, url }) => ({
    runner: { args: ["--acp"], env: [KEY], hosts: [new URL(url).host], folders: [`${root}/.qwen`] },
    env: { OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "scripted-1", [KEY]: "test-key" },
    files: {
      ".qwen/settings.json": JSON.stringify({
        security: { auth: { selectedType: "openai" } },
        general: { enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        // A model that it does not know is given none.
        model: { generationConfig: { modalities: { image: true } } },
      }),
    },
  }),
  step(step) {
    if ("says" in step) return spoken(step);
    if ("writes" in step)
      return { calls: [{ tool: "write_file", args: { file_path: step.writes, content: step.content } }] };
    const command = "runs" in step ? step.runs : step.forces;
    const args = { command, description: "a step of the test", is_background: false };
    return { calls: [{ tool: "run_shell_command", args }] };
  },
  // An agent of its own that looks after its memory has some of these tools, and no others. After a turn it asks what its user may
  // say next, with all of them.
  isOfTurn: ({ source }) =>
    source.includes('"name":"ask_user_question"') && !source.includes("Reply with ONLY the suggestion"),
  wantsWholePaths: true,
  // It describes tools in a way that OpenAI refuses and other servers of this wire accept.
  isUncheckedWire: true,
};
