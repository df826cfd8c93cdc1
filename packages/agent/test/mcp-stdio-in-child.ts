/**
 * An MCP server of the session era (2025-11-25) written by hand, so that it can misbehave: speaks JSON-RPC over its standard
 * streams. Its arguments choose what goes wrong: `node mcp-stdio-in-child.ts <mode>`.
 */
import { spawnSync } from "node:child_process";
import { closeSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";

type Json = Record<string, unknown>;

const mode = process.argv[2] ?? "good";
const anything = { type: "object", properties: {} };
let listed = 0;
let hasChanged = false;
let nextRequest = 0;
const answers = new Map<unknown, (answer: Json) => void>();

// It writes on after it closed its output.
process.stdout.on("error", () => undefined);
if (mode === "cannot-start") {
  process.stderr.write("\u001b[31mno such database\u001b[0m\n");
  process.exit(3);
}
if (mode === "talks") process.stdout.write("Welcome to the server!\nlistening…\n");

createInterface({ input: process.stdin }).on("line", (line) => {
  const message: Json = JSON.parse(line);
  const waiting = answers.get(message["id"]);
  if (message["method"] === undefined) waiting?.(message);
  else handle(message).catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
});
// Stays when its input ends: whoever started it has to end it.
setInterval(() => undefined, 1000);

function send(message: Json): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function ask(method: string, params: Json = {}): Promise<Json> {
  nextRequest += 1;
  const id = `ask-${nextRequest}`;
  send({ id, method, params });
  return new Promise((resolve) => answers.set(id, resolve));
}

async function handle({ id, method, params = {} }: Json): Promise<void> {
  if (mode === "silent") return;
  if (mode === "dies-of-probe" && method !== "initialize" && listed === 0) process.exit(7);
  const given = params as Json;
  switch (method) {
    case "initialize": {
      listed = 1;
      const capabilities = { tools: { listChanged: true } };
      send({
        id,
        result: { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "fixture", version: "1" } },
      });
      if (mode === "floods") flood();
      return;
    }
    case "tools/list":
      return send({ id, result: page(given["cursor"]) });
    case "tools/call":
      return send({
        id,
        result: await call(String(given["name"]), given["arguments"] as Json, given["_meta"] as Json),
      });
    case "notifications/cancelled":
      writeFileSync("cancelled.txt", JSON.stringify(given));
      return;
    case "notifications/initialized":
      return;
    default:
      if (id !== undefined) send({ id, error: { code: -32601, message: "Method not found" } });
  }
}

function page(cursor: unknown): Json {
  if (mode === "hostile") return { tools: hostileTools() };
  const tools = [
    {
      name: "echo",
      description: "Says it again",
      inputSchema: mode === "odd-schemas" ? oddSchema : schemaOfEcho,
      annotations: { readOnlyHint: true },
    },
    { name: "write", description: "Writes a file", inputSchema: anything },
    { name: "dial", description: "Connects to a port of this host", inputSchema: anything },
    { name: "look", description: "Shows its environment", inputSchema: anything, annotations: { readOnlyHint: true } },
    {
      name: "misbehave",
      description: hasChanged ? "Now something else" : "Does what it is told",
      inputSchema: anything,
    },
  ];
  if (mode === "runs") tools.push({ name: "run", description: "Runs a command", inputSchema: anything });
  // Two pages, as a server with many tools has.
  return cursor === undefined ? { tools: tools.slice(0, 2), nextCursor: "2" } : { tools: tools.slice(2) };
}

const schemaOfEcho = {
  type: "object",
  properties: { text: { anyOf: [{ type: "string", minLength: 1 }, { type: "null" }] } },
  additionalProperties: false,
};

/** Right by the standard, and refused by every service as it is. */
const oddSchema = {
  type: "object",
  properties: { text: { type: "string" }, words: { type: "array" } },
  anyOf: [{ required: ["text"] }, { required: ["words"] }],
};

function hostileTools(): unknown[] {
  const many = Array.from({ length: 1000 }, (_, index) => ({ name: `tool-${index}`, inputSchema: anything }));
  let deep: Json = {};
  for (let depth = 0; depth < 150; depth += 1) deep = { type: "object", properties: { deeper: deep } };
  return [
    { name: "exec_command", description: "<b>bold</b>\u001b[2J\u202Eevil", inputSchema: anything },
    { name: "long", description: "x".repeat(1_000_000), inputSchema: anything },
    { name: "n".repeat(10_000), inputSchema: anything },
    { name: "large", inputSchema: { type: "object", description: "y".repeat(1_000_000) } },
    { name: "deep", inputSchema: deep },
    { name: "ünï cødé/../..", inputSchema: anything },
    { name: "a.b", inputSchema: anything },
    { name: "a b", inputSchema: anything },
    { name: 5 },
    "no object",
    { name: "no-schema" },
    { name: "list", inputSchema: { type: "array" } },
    ...many,
  ];
}

async function call(name: string, args: Json, meta: Json | undefined): Promise<Json> {
  switch (name) {
    case "echo":
      return { content: [{ type: "text", text: String(args["text"]) }], structuredContent: { said: args["text"] } };
    case "write":
      return attempt(() => written(String(args["path"])));
    case "dial":
      return { content: [{ type: "text", text: await dial(Number(args["port"])) }] };
    case "run":
      return { content: [{ type: "text", text: ran(String(args["cmd"])) }] };
    case "look":
      return { content: [{ type: "text", text: JSON.stringify(process.env) }] };
    default:
      return misbehave(String(args["how"]), meta?.["progressToken"]);
  }
}

async function misbehave(how: string, progressToken: unknown): Promise<Json> {
  switch (how) {
    case "die":
      process.stderr.write("out of memory\n");
      return process.exit(9);
    case "hang":
      return new Promise(() => undefined);
    case "progress":
      for (let step = 1; step <= 6; step += 1) {
        await new Promise((resolve) => setTimeout(resolve, 100));
        send({ method: "notifications/progress", params: { progressToken, progress: step, message: `step ${step}` } });
      }
      return { content: [{ type: "text", text: "after much progress" }] };
    case "huge":
      return { content: [{ type: "text", text: "z".repeat(50 * 1024 * 1024) }] };
    case "long":
      return { content: [{ type: "text", text: `begin${"z".repeat(200_000)}end` }] };
    case "close":
      closeSync(1);
      return new Promise(() => undefined);
    case "chatter":
      for (let count = 0; count < 5000; count += 1) {
        send({ method: "notifications/message", params: { level: "info", data: `line ${count}` } });
      }
      return { content: [{ type: "text", text: "said a lot" }] };
    case "image":
      return { content: [{ type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }] };
    case "refuse":
      return { isError: true, content: [{ type: "text", text: "no, I will not" }] };
    case "change":
      hasChanged = true;
      send({ method: "notifications/tools/list_changed" });
      return { content: [{ type: "text", text: "changed" }] };
    case "roots":
      return { content: [{ type: "text", text: JSON.stringify(await ask("roots/list")) }] };
    case "elicit":
      return {
        content: [{ type: "text", text: JSON.stringify(await ask("elicitation/create", { message: "who?" })) }],
      };
    default: {
      const [, path] = /^read (.*)$/.exec(how) ?? [];
      return path === undefined ? { content: [] } : attempt(() => readFileSync(path, "utf8"));
    }
  }
}

function written(path: string): string {
  writeFileSync(path, "written");
  return "done";
}

function ran(cmd: string): string {
  const { stdout, stderr } = spawnSync("sh", ["-c", cmd], { encoding: "utf8" });
  return `${stdout}${stderr}`;
}

function attempt(act: () => string): Json {
  try {
    return { content: [{ type: "text", text: act() }] };
  } catch (error) {
    return { isError: true, content: [{ type: "text", text: String(error) }] };
  }
}

function dial(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve("connected");
    });
    socket.once("error", (error) => resolve(`refused: ${error.message}`));
  });
}

function flood(): void {
  const line = `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "!" } })}\n`;
  const lines = line.repeat(500);
  const more = (): void => {
    process.stdout.write(lines);
    // Its other work gets a turn: it answers in the middle of the flood.
    setImmediate(more);
  };
  more();
}
