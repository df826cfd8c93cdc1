/** Tools of MCP servers: listed, called, asked about. */
import { MOCK_CONFIG, say } from "../../exec-case.ts";
import { threadStarted, turn, type Scenario } from "../scenario.ts";

/** A server with one tool, which says what it is told. */
export const ECHO_SERVER = `
import { createInterface } from "node:readline";
const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize")
    answer(id, {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "echo", version: "1.0.0" },
    });
  else if (method === "tools/list")
    answer(id, {
      tools: [
        {
          name: "echo",
          description: "Says it again",
          inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
        },
      ],
    });
  else if (method === "tools/call") answer(id, { content: [{ type: "text", text: params.arguments.text }] });
  else if (id !== undefined) answer(id, {});
});
`;

export const ECHO_CONFIG = `${MOCK_CONFIG}
[mcp_servers.echo]
command = "${process.execPath}"
args = ["{root}/echo.mjs"]
default_tools_approval_mode = "prompt"
`;

const ELICITATION = "mcpServer/elicitation/request";

function asked(id: string, about: string, action: string): Scenario {
  return {
    id: `mcp-${id}`,
    about,
    config: ECHO_CONFIG,
    files: { "echo.mjs": ECHO_SERVER },
    script: [{ calls: [{ tool: "mcp__echo__echo", args: { text: "hi" } }] }, say("ok")],
    moves: [
      ...threadStarted({ approvalPolicy: "on-request" }),
      ...turn("Say it", ELICITATION),
      { reply: { action, content: action === "accept" ? {} : null, _meta: null }, to: ELICITATION },
      { until: "turn/completed" },
    ],
  };
}

export const MCP: readonly Scenario[] = [
  asked("accept", "a tool of an MCP server is allowed", "accept"),
  asked("decline", "a tool of an MCP server is refused", "decline"),
  asked("cancel", "a question about a tool of an MCP server is waved away", "cancel"),
];
