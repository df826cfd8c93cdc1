/** Tools of MCP servers: listed, called, asked about. */
import { MOCK_CONFIG, say } from "../../exec-case.ts";
import { threadStarted, turn, type Scenario } from "../scenario.ts";

/** A server with one tool, which says what it is told. */
export const ECHO_SERVER = `
import { createInterface } from "node:readline";
const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
let asked;
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
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
  else if (method === "tools/call" && params.arguments.text === "who") {
    asked = id;
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const question = { message: "What is your name?", requestedSchema };
    console.log(JSON.stringify({ jsonrpc: "2.0", id: "q1", method: "elicitation/create", params: question }));
  } else if (id === "q1") answer(asked, { content: [{ type: "text", text: result.action + " " + (result.content?.name ?? "") }] });
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

/** The server itself wants to know something in the middle of a call. */
function elicited(id: string, about: string, reply: unknown): Scenario {
  return {
    id: `mcp-elicit-${id}`,
    about,
    config: ECHO_CONFIG.replace("prompt", "approve"),
    files: { "echo.mjs": ECHO_SERVER },
    script: [{ calls: [{ tool: "mcp__echo__echo", args: { text: "who" } }] }, say("ok")],
    moves: [
      ...threadStarted({ approvalPolicy: "on-request" }),
      ...turn("Ask", ELICITATION),
      { reply, to: ELICITATION },
      { until: "turn/completed" },
    ],
  };
}

export const MCP: readonly Scenario[] = [
  elicited("accept", "an MCP server is told what it wants to know", {
    action: "accept",
    content: { name: "Ada" },
    _meta: null,
  }),
  elicited("decline", "an MCP server is not told what it wants to know", {
    action: "decline",
    content: null,
    _meta: null,
  }),
  asked("accept", "a tool of an MCP server is allowed", "accept"),
  asked("decline", "a tool of an MCP server is refused", "decline"),
  asked("cancel", "a question about a tool of an MCP server is waved away", "cancel"),
];
