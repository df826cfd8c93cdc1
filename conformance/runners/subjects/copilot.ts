/** GitHub Copilot CLI over ACP, with a provider of the user's own in place of GitHub's: nobody logs in. */
import { native } from "../native.ts";
import { keeping, spoken, type Subject } from "../subject.ts";

const KEY = "COPILOT_PROVIDER_API_KEY";

export const subject: Subject = {
  name: "copilot",
  protocol: "acp",
  package: "@github/copilot",
  file: `@github/copilot-${native()}/copilot`,
  setUp: ({ url }) => ({
    runner: { env: [KEY], hosts: [new URL(url).host] },
    env: {
      COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
      COPILOT_PROVIDER_TYPE: "openai",
      COPILOT_MODEL: "scripted-1",
      [KEY]: "test-key",
    },
    files: keeping(".cache"),
  }),
  step(step) {
    if ("says" in step) return spoken(step);
    if ("writes" in step) return { calls: [{ tool: "create", args: { path: step.writes, file_text: step.content } }] };
    const command = "runs" in step ? step.runs : step.forces;
    return { calls: [{ tool: "bash", args: { command, description: "a step of the test" } }] };
  },
  isOfTurn: ({ source }) => source.includes('"name":"bash"'),
};
