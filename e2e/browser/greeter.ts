/** What a home says in which agents have an MCP server with one tool, which asks its user for words before it greets. */
import type { World } from "../world.ts";

const SERVER = `
import { createInterface } from "node:readline";
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
let waiting;
const requestedSchema = {
  type: "object",
  properties: {
    name: { type: "string", title: "Your name" },
    times: { type: "integer", title: "How often" },
    tongue: { type: "string", enum: ["english", "latin"], title: "Language" },
    loud: { type: "boolean", title: "Loud" },
  },
  required: ["name", "times"],
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "initialize") {
    const serverInfo = { name: "greeter", version: "1" };
    return say({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo } });
  }
  if (method === "tools/list") {
    const inputSchema = { type: "object", properties: { words: { type: "string" } } };
    const tool = (name) => ({ name, description: "Greets the user", inputSchema });
    return say({ id, result: { tools: [tool("greet"), tool("shout")] } });
  }
  if (method === "tools/call" && params.name === "shout") {
    return say({ id, result: { content: [{ type: "text", text: String(params.arguments.words ?? "").length + " letters" }] } });
  }
  if (method === "tools/call") {
    waiting = id;
    return say({ id: "q1", method: "elicitation/create", params: { message: "Whom to greet, and how?", requestedSchema } });
  }
  if (id === "q1") {
    const text = result.action + " " + JSON.stringify(result.content ?? null);
    return say({ id: waiting, result: { content: [{ type: "text", text }] } });
  }
  if (id !== undefined) say({ id, error: { code: -32601, message: "Method not found" } });
});
`;

/** `greet` asks for a form, `shout` is asked about before it is called. */
export async function greeterConfig(world: World): Promise<string> {
  const file = await world.file("programs/greeter.mjs", SERVER);
  return `ask_user = true

[mcp_servers.greeter]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(file)}]
default_tools_approval_mode = "approve"
[mcp_servers.greeter.tools.shout]
approval_mode = "prompt"
`;
}
