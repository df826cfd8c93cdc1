/** OpenCode over HTTP. Its provider of models is one of its configuration, which any server can be that speaks Chat Completions. */
import { native } from "../native.ts";
import { keeping, spoken, type Subject } from "../subject.ts";

const MODEL = {
  name: "Scripted",
  tool_call: true,
  attachment: true,
  modalities: { input: ["text", "image"], output: ["text"] },
  limit: { context: 128_000, output: 8000 },
};

export const subject: Subject = {
  name: "opencode",
  protocol: "opencode",
  package: "opencode-ai",
  // The program itself, without the JavaScript that npm puts before it.
  file: `opencode-${native()}/bin/opencode`,
  setUp: ({ url }) => ({
    runner: { hosts: [new URL(url).host] },
    env: { OPENCODE_DISABLE_MODELS_FETCH: "1" },
    files: {
      ...keeping(".local/share", ".local/state", ".cache"),
      ".config/opencode/opencode.json": JSON.stringify({
        provider: {
          scripted: {
            npm: "@ai-sdk/openai-compatible",
            name: "Scripted",
            options: { baseURL: `${url}/v1`, apiKey: "test-key" },
            models: { "scripted-1": MODEL },
          },
        },
        model: "scripted/scripted-1",
        small_model: "scripted/scripted-1",
        // Whatever it would allow itself.
        permission: "allow",
        autoupdate: false,
        share: "disabled",
      }),
    },
  }),
  step(step) {
    if ("says" in step) return spoken(step);
    if ("writes" in step) return { calls: [{ tool: "write", args: { filePath: step.writes, content: step.content } }] };
    const command = "runs" in step ? step.runs : step.forces;
    return { calls: [{ tool: "bash", args: { command, description: "a step of the test" } }] };
  },
  isOfTurn: ({ source }) => source.includes('"name":"bash"'),
};
