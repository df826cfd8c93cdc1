/**
 * Plays a server of OpenCode: HTTP with basic auth, and server-sent events, as they were recorded. It takes its steps from its
 * arguments instead of a model; its commands really run, and its conversations outlive it in a file.
 * Arguments: a name, the steps as JSON; the port comes after them.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";

export type OpenCodeStep =
  | { readonly says: string }
  | { readonly runs: string }
  /** What its provider refused. */
  | { readonly fails: string }
  | { readonly exits: number }
  /** It has no conversation that was begun before. */
  | { readonly forgets: true }
  /** It asks the user. */
  | { readonly wonders: string };

// oxlint-disable-next-line typescript/no-explicit-any
type Json = Record<string, any>;

const [, , name, scriptText = "[]", ...added] = process.argv;
if (name === "--version") {
  process.stdout.write("1.18.33\n");
  process.exit(0);
}
const script: readonly OpenCodeStep[] = JSON.parse(scriptText);
const port = Number(added[added.indexOf("--port") + 1]);
const user = process.env["OPENCODE_SERVER_USERNAME"] ?? "opencode";
const password = process.env["OPENCODE_SERVER_PASSWORD"] ?? "";
const AUTHORIZATION = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;

const streams = new Set<ServerResponse>();
const replies = new Map<string, (reply: Json) => void>();
let session = "ses_e2208a9feffeyOBqnJVNNdQfje";
let asks = false;
let ids = 0;
let running: ChildProcess | undefined;
let isAborted = false;
let isBusy = false;
/** What another client than Heddle has said, to be answered when the steps are over. */
const said: string[] = [];

function tell(type: string, properties: Json): void {
  ids += 1;
  const event = { id: `evt_${ids}`, type, properties: { sessionID: session, ...properties } };
  for (const stream of streams) stream.write(`data: ${JSON.stringify(event)}\n\n`);
}

const id = (kind: string): string => {
  ids += 1;
  return `${kind}_${process.pid}_${ids}`;
};

const USED = { total: 120, input: 60, output: 20, reasoning: 0, cache: { read: 40, write: 0 } };

function message(messageID: string, more: Json): void {
  const info = { id: messageID, role: "assistant", providerID: "mock", modelID: "mock", sessionID: session };
  tell("message.updated", { info: { ...info, time: { created: 1 }, ...more } });
}

function part(messageID: string, more: Json): void {
  tell("message.part.updated", { part: { id: id("prt"), messageID, sessionID: session, ...more }, time: 1 });
}

async function step(one: OpenCodeStep, messageID: string): Promise<void> {
  if ("says" in one) {
    const text = { id: id("prt"), type: "text" };
    part(messageID, { ...text, text: "", time: { start: 1 } });
    tell("message.part.delta", { messageID, partID: text.id, field: "text", delta: one.says });
    // The whole comes twice at times.
    for (let told = 0; told < 2; told += 1) part(messageID, { ...text, text: one.says, time: { start: 1, end: 2 } });
  } else if ("runs" in one) await call(one.runs, messageID);
  else if ("exits" in one) {
    process.stderr.write("something broke inside\n");
    process.exit(one.exits);
  } else if ("wonders" in one) {
    const asked = id("que");
    const options = [{ label: "yes", description: "" }];
    const answer = new Promise<Json>((resolve) => replies.set(asked, resolve));
    tell("question.asked", { id: asked, questions: [{ question: one.wonders, header: "", options }] });
    const { answers } = await answer;
    await step({ says: `answered ${JSON.stringify(answers ?? "nothing")}` }, messageID);
  }
}

async function call(command: string, messageID: string): Promise<void> {
  const callID = id("call");
  const tool = { id: id("prt"), type: "tool", tool: "bash", callID };
  const input = { command, description: "play" };
  part(messageID, { ...tool, state: { status: "pending", input: {}, raw: "" } });
  if (asks) {
    const asked = id("per");
    const answer = new Promise<Json>((resolve) => replies.set(asked, resolve));
    const about = { permission: "bash", patterns: [command], metadata: { command }, always: [command] };
    // At times before it says that the call runs.
    tell("permission.asked", { id: asked, ...about, tool: { messageID, callID } });
    part(messageID, { ...tool, state: { status: "running", input, time: { start: 1 } } });
    const { reply, message: why } = await answer;
    tell("permission.replied", { requestID: asked, reply });
    if (reply === "reject") {
      const error = `The user rejected it: ${why}`;
      return part(messageID, { ...tool, state: { status: "error", input, error, time: { start: 1, end: 2 } } });
    }
  }
  part(messageID, { ...tool, state: { status: "running", input, metadata: { output: "" }, time: { start: 1 } } });
  let output = "";
  const child = spawn("sh", ["-c", command], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  running = child;
  const take = (chunk: Buffer): void => {
    output += chunk.toString();
    part(messageID, { ...tool, state: { status: "running", input, metadata: { output }, time: { start: 1 } } });
  };
  child.stdout.on("data", take);
  child.stderr.on("data", take);
  const exit = await new Promise<number | null>((resolve) => child.once("close", resolve));
  running = undefined;
  const time = { start: 1, end: 2 };
  const state = isAborted
    ? { status: "error", input, error: "Tool execution aborted", metadata: { output }, time }
    : { status: "completed", input, output, metadata: { output, exit, truncated: false }, title: command, time };
  part(messageID, { ...tool, state });
}

async function turn(): Promise<void> {
  await play(script);
}

function* withSaid(steps: readonly OpenCodeStep[]): Generator<OpenCodeStep> {
  yield* steps;
  for (let text = said.shift(); text !== undefined; text = said.shift()) yield { says: `heard: ${text}` };
}

async function play(steps: readonly OpenCodeStep[]): Promise<void> {
  isAborted = false;
  isBusy = true;
  tell("session.status", { status: { type: "busy" } });
  for (const one of withSaid(steps)) {
    if (isAborted) return;
    if ("forgets" in one) continue;
    const messageID = id("msg");
    message(messageID, {});
    part(messageID, { type: "step-start" });
    if ("fails" in one) return failed(messageID, { name: "APIError", data: { message: one.fails, statusCode: 529 } });
    await step(one, messageID);
    const reason = "says" in one ? "stop" : "tool-calls";
    part(messageID, { type: "step-finish", reason, tokens: USED, cost: 0 });
    if (isAborted) return failed(messageID, { name: "MessageAbortedError", data: { message: "Aborted" } });
    message(messageID, { finish: reason, time: { created: 1, completed: 2 } });
  }
  idle();
}

function idle(): void {
  isBusy = false;
  tell("session.status", { status: { type: "idle" } });
  tell("session.idle", {});
}

/** It says idle once before its message is closed, and once after. */
function failed(messageID: string, error: Json): void {
  tell("session.error", { error });
  idle();
  message(messageID, { error, time: { created: 1, completed: 2 } });
  idle();
}

const memory = join(process.cwd(), ".opencode-play.json");
const knows = (sessionId: string): boolean =>
  existsSync(memory) && readFileSync(memory, "utf8").includes(sessionId) && !script.some((one) => "forgets" in one);

function answer(method: string, path: string, body: Json): readonly [number, unknown] {
  const [, first, one = "", what] = path.split("/");
  if (path === "/global/health") return [200, { healthy: true, version: "1.18.33" }];
  if (first === "permission" || first === "question") {
    replies.get(one)?.(body);
    return [200, true];
  }
  if (first !== "session") return [404, { name: "NotFound" }];
  if (method === "POST" && one === "") {
    session = id("ses");
    asks = body["permission"]?.some((rule: Json) => rule["permission"] === "bash" && rule["action"] === "ask");
    try {
      writeFileSync(memory, session);
    } catch {
      // Where nothing may be written, nothing is remembered.
    }
    return [200, { id: session }];
  }
  if (method === "GET") {
    if (!knows(one)) return [404, { name: "NotFoundError" }];
    session = one;
    asks = JSON.parse(process.env["OPENCODE_CONFIG_CONTENT"] ?? "{}").permission?.bash === "ask";
    return [200, { id: one }];
  }
  if (what === "fork") {
    session = id("ses");
    // What is copied is told as if it were said again.
    const messageID = id("msg");
    message(messageID, { finish: "stop", time: { created: 1, completed: 2 } });
    part(messageID, { type: "text", text: "said before", time: { start: 1, end: 2 } });
    return [200, { id: session }];
  }
  if (what === "prompt_async") {
    const messageID = id("msg");
    tell("message.updated", { info: { id: messageID, role: "user", sessionID: session, time: { created: 1 } } });
    for (const given of body["parts"]) part(messageID, given);
    const [{ metadata, text }] = body["parts"];
    if (metadata?.heddle !== true) said.push(text);
    if (!isBusy) (metadata?.heddle === true ? turn() : play([])).catch(() => process.exit(1));
    return [204, ""];
  }
  if (what === "abort") {
    isAborted = true;
    if (running?.pid !== undefined) process.kill(-running.pid, "SIGKILL");
    return [200, true];
  }
  return [404, { name: "NotFound" }];
}

const server = createServer((request, response) => {
  if (request.headers.authorization !== AUTHORIZATION) return void response.writeHead(401).end();
  const { pathname } = new URL(request.url ?? "/", "http://127.0.0.1");
  if (pathname === "/event") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    streams.add(response);
    response.on("close", () => streams.delete(response));
    return void response.write(
      `data: ${JSON.stringify({ id: "evt_0", type: "server.connected", properties: {} })}\n\n`,
    );
  }
  let text = "";
  request.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  return void request.on("end", () => {
    const [status, body] = answer(request.method ?? "GET", pathname, text === "" ? {} : JSON.parse(text));
    response.writeHead(status, { "content-type": "application/json" });
    response.end(status === 204 ? undefined : JSON.stringify(body));
  });
});
server.listen(port, "127.0.0.1", () => {
  const address = server.address();
  const at = typeof address === "object" ? address?.port : undefined;
  process.stdout.write(`opencode server listening on http://127.0.0.1:${at}\n`);
});
