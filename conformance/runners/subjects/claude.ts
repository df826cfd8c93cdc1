/** Claude Code over stream-json. */
import { spoken, type Subject } from "../subject.ts";
import { native } from "../native.ts";

const KEY = "ANTHROPIC_API_KEY";

export const subject: Subject = {
  name: "claude",
  protocol: "claude",
  package: "@anthropic-ai/claude-code",
  // The program itself, without the JavaScript that npm puts before it.
  file: `@anthropic-ai/claude-code-${native()}/claude`,
  setUp: ({ url }) => ({
    runner: { env: [KEY], hosts: [new URL(url).host] },
    // It asks ten times otherwise, for minutes.
    env: { ANTHROPIC_BASE_URL: url, [KEY]: "test-key", CLAUDE_CODE_MAX_RETRIES: "1" },
  }),
  step(step) {
    if ("says" in step) return spoken(step);
    if ("writes" in step)
      return { calls: [{ tool: "Write", args: { file_path: step.writes, content: step.content } }] };
    const args = "runs" in step ? { command: step.runs } : { command: step.forces, dangerouslyDisableSandbox: true };
    return { calls: [{ tool: "Bash", args }] };
  },
  // Titles and the like are asked for without tools.
  isOfTurn: ({ source }) => source.includes('"name":"Bash"'),
  wantsWholePaths: true,
};
