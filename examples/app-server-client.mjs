// One turn over JSON-RPC on standard streams, as a client of codex app-server would.
// node app-server-client.mjs "say hello"        HEDDLE names another program than `heddle`; a .cjs or .js is run by Node.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const program = process.env.HEDDLE ?? "heddle";
const [file, ...args] = /\.c?js$/.test(program) ? [process.execPath, program] : [program];
const server = spawn(file, [...args, "app-server"], { stdio: ["pipe", "pipe", "inherit"] });
const [prompt = "say hello"] = process.argv.slice(2);

const waiting = new Map();
const ended = Promise.withResolvers();
let nextId = 1;

const send = (message) => server.stdin.write(`${JSON.stringify(message)}\n`);

function call(method, params) {
  const id = nextId++;
  send({ id, method, params });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

/** What the server tells. Deltas come as they are written; the completed item has the whole text again. */
const heard = {
  "item/agentMessage/delta": ({ delta }) => process.stdout.write(delta),
  "item/started": ({ item }) => item.type === "commandExecution" && process.stdout.write(`$ ${item.command}\n`),
  "turn/completed": ({ turn }) => ended.resolve(turn),
};

/** What the server asks: here everything is refused; approve-from-second-terminal.mjs lets a person decide. */
const asked = (id) => send({ id, result: { decision: "decline" } });

createInterface({ input: server.stdout }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method !== undefined) return id === undefined ? heard[method]?.(params) : asked(id);
  const { resolve, reject } = waiting.get(id);
  waiting.delete(id);
  return error === undefined ? resolve(result) : reject(new Error(error.message));
});
server.on("exit", (code) => ended.reject(new Error(`the server ended (${code})`)));

await call("initialize", { clientInfo: { name: "example", version: "1.0.0" }, capabilities: null });
send({ method: "initialized" });
const { thread } = await call("thread/start", {
  cwd: process.cwd(),
  sandbox: "read-only",
  approvalPolicy: "on-request",
});
await call("turn/start", { threadId: thread.id, input: [{ type: "text", text: prompt }] });
const turn = await ended.promise;
process.stdout.write(`\n${turn.status} (thread ${thread.id})\n`);
process.exitCode = turn.status === "completed" ? 0 : 1;
// The server on standard streams ends with its client.
server.removeAllListeners("exit");
server.stdin.end();
