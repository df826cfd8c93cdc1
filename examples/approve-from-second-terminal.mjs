// Answers the questions of a running thread from another terminal. First: heddle app-server --listen unix://
// Then: node approve-from-second-terminal.mjs THREAD_ID        asks you: y, n, a (always in this thread), c (stop)
import { connect } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const home = process.env.HEDDLE_HOME ?? join(homedir(), ".heddle");
const socket = connect(process.env.HEDDLE_SOCKET ?? join(home, "app-server.sock"));
const [threadId] = process.argv.slice(2);
const DECISIONS = { y: "accept", n: "decline", a: "acceptForSession", c: "cancel" };

const say = (words) => process.stdout.write(`${words}\n`);
const send = (message) => socket.write(`${JSON.stringify(message)}\n`);
/** Questions that nobody has answered yet, oldest first. */
const open = new Map();

const heard = {
  // Somebody else was quicker, or the turn is over.
  "serverRequest/resolved": ({ requestId }) => {
    if (open.delete(requestId)) say("answered");
  },
  "turn/completed": ({ turn }) => {
    say(`turn ${turn.status}`);
    socket.end();
    keys.close();
  },
};

function asked(id, method, params) {
  open.set(id, method);
  if (method === "item/commandExecution/requestApproval") say(`? run ${params.command} in ${params.cwd}`);
  else if (method === "item/fileChange/requestApproval") say(`? change files (${params.itemId})`);
  else say(`? ${params.message}`);
}

const keys = createInterface({ input: process.stdin });
keys.on("line", (line) => {
  const [next] = open;
  const decision = DECISIONS[line.trim()];
  if (next === undefined || decision === undefined) return say("y, n, a or c, when a question is open");
  const [id, method] = next;
  // A question about a tool of an MCP server is answered in other words.
  const action = decision === "acceptForSession" ? "accept" : decision;
  return send({ id, result: method.startsWith("mcpServer/") ? { action, content: {} } : { decision } });
});

createInterface({ input: socket }).on("line", (line) => {
  const { id, method, params, error } = JSON.parse(line);
  if (error !== undefined) throw new Error(error.message);
  if (method === undefined) return;
  if (id === undefined) heard[method]?.(params);
  else asked(id, method, params);
});
send({
  id: 1,
  method: "initialize",
  params: { clientInfo: { name: "approver", version: "1.0.0" }, capabilities: null },
});
send({ id: 2, method: "thread/resume", params: { threadId, excludeTurns: true } });
