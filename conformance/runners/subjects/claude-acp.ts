/** Claude Code behind the ACP adapter of the protocol's makers, which brings a Claude Code of its own. */
import { spoken, type Subject } from "../subject.ts";

const KEY = "ANTHROPIC_API_KEY";

export const subject: Subject = {
  name: "claude-acp",
  protocol: "acp",
  package: "@agentclientprotocol/claude-agent-acp",
  file: "@agentclientprotocol/claude-agent-acp/dist/index.js",
  setUp: ({ root, url }) => ({
    runner: { args: [], env: [KEY], hosts: [new URL(url).host], folders: [`${root}/.claude`] },
    env: {
      ANTHROPIC_BASE_URL: url,
      CLAUDE_CONFIG_DIR: `${root}/.claude`,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      // It asks ten times otherwise, for minutes.
      CLAUDE_CODE_MAX_RETRIES: "1",
      [KEY]: "test-key",
    },
  }),
  step(step) {
    if ("says" in step) return spoken(step);
    if ("writes" in step)
      return { calls: [{ tool: "Write", args: { file_path: step.writes, content: step.content } }] };
    const args = "runs" in step ? { command: step.runs } : { command: step.forces, dangerouslyDisableSandbox: true };
    return { calls: [{ tool: "Bash", args }] };
  },
  // After a turn it asks what its user may say next, with all of its tools.
  isOfTurn: ({ source }) => source.includes('"name":"Bash"') && !source.includes("Reply with ONLY the suggestion"),
  wantsWholePaths: true,
};
