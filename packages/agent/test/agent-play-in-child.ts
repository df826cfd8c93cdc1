/**
 * Plays the program of an agent program: it speaks the wire that was recorded of Codex, Claude Code or an ACP agent, and takes
 * its steps from its arguments instead of a model. Its commands really run.
 * Arguments: the protocol, the steps as JSON; whatever a runner adds comes after them.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

export type PlayStep =
  | { readonly says: string }
  | { readonly runs: string; readonly asksOut?: boolean }
  /** What the provider refused, in the way that this program tells of it. */
  | { readonly fails: string }
  /** As it is, on its output. */
  | { readonly prints: string }
  /** With a word for people. */
  | { readonly exits: number }
  /** It has no conversation that was begun before. */
  | { readonly forgets: true };

/** Messages of recorded wires; what is read of them is known to be there. */
// oxlint-disable-next-line typescript/no-explicit-any
type Json = Record<string, any>;

const [, , protocol = "codex", scriptText = "[]", ...added] = process.argv;
if (protocol === "--version") {
  process.stdout.write("1.0.0 (play)\n");
  process.exit(0);
}
const script: readonly PlayStep[] = JSON.parse(scriptText);
const send = (message: Json): void => void process.stdout.write(`${JSON.stringify(message)}\n`);
const sleepless = createInterface({ input: process.stdin });

interface Ran {
  readonly output: string;
  readonly code: number | null;
}

let running: ChildProcess | undefined;
let isStopped = false;
let calls = 0;

function run(command: string, onOutput: (text: string) => void): Promise<Ran> {
  const child = spawn("sh", ["-c", command], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  running = child;
  let output = "";
  const take = (chunk: Buffer): void => {
    output += chunk.toString();
    onOutput(chunk.toString());
  };
  child.stdout.on("data", take);
  child.stderr.on("data", take);
  return new Promise((resolve) =>
    child.once("close", (code) => {
      running = undefined;
      resolve({ output, code });
    }),
  );
}

function stop(): void {
  isStopped = true;
  if (running?.pid !== undefined) process.kill(-running.pid, "SIGKILL");
}

/** Answers of the client to what was asked. */
const waiting = new Map<string, (answer: Json) => void>();
let asked = 0;
function ask(key: string, message: Json): Promise<Json> {
  return new Promise((resolve) => {
    waiting.set(key, resolve);
    send(message);
  });
}

interface Voice {
  begin(): void;
  says(text: string): void;
  /** False: declined. */
  mayRun(id: string, command: string): Promise<boolean>;
  ran(id: string, command: string, ran: Ran): void;
  output(id: string, text: string): void;
  declined(id: string, command: string): void;
  end(how: "completed" | "interrupted" | "failed", message: string): void;
}

async function turn(voice: Voice): Promise<void> {
  isStopped = false;
  voice.begin();
  for (const step of script) {
    if (isStopped) break;
    if ("forgets" in step) continue;
    if ("says" in step) voice.says(step.says);
    else if ("prints" in step) process.stdout.write(`${step.prints}\n`);
    else if ("fails" in step) return voice.end("failed", step.fails);
    else if ("exits" in step) {
      process.stderr.write("something broke inside\n");
      process.exit(step.exits);
    } else {
      calls += 1;
      const id = `call_${calls}`;
      if (await voice.mayRun(id, step.runs))
        voice.ran(id, step.runs, await run(step.runs, (text) => voice.output(id, text)));
      else voice.declined(id, step.runs);
    }
  }
  voice.end(isStopped ? "interrupted" : "completed", "");
}

const USED = { totalTokens: 120, inputTokens: 100, cachedInputTokens: 40, outputTokens: 20, reasoningOutputTokens: 5 };

function codex(): (message: Json) => void {
  let policy = "never";
  let total = 0;
  let turns = 0;
  const threadId = "01a1ddf4-6d4a-7a92-9883-c0009c790f18";
  const tell = (method: string, params: Json): void =>
    send({ method, params: { threadId, turnId: `turn_${turns}`, ...params } });
  const used = (): void => {
    total += 120;
    tell("thread/tokenUsage/updated", { tokenUsage: { total: { ...USED, totalTokens: total }, last: USED } });
  };
  const item = (id: string, command: string, more: Json): Json => ({
    item: { type: "commandExecution", id, command: `/bin/bash -c '${command}'`, cwd: process.cwd(), ...more },
  });
  const voice: Voice = {
    begin: () => tell("turn/started", { turn: { id: `turn_${turns}`, status: "inProgress" } }),
    says(text) {
      const id = `msg_${turns}_${total}`;
      tell("item/started", { item: { type: "agentMessage", id, text: "" } });
      tell("item/agentMessage/delta", { itemId: id, delta: text });
      tell("item/completed", { item: { type: "agentMessage", id, text } });
      used();
    },
    async mayRun(id, command) {
      used();
      tell("item/started", item(id, command, { status: "inProgress" }));
      if (policy !== "untrusted") return true;
      const params = { threadId, turnId: `turn_${turns}`, itemId: id, command, cwd: process.cwd() };
      asked += 1;
      const { result } = await ask(`${asked}`, { id: asked, method: "item/commandExecution/requestApproval", params });
      return result?.decision === "accept";
    },
    output: (itemId, delta) => tell("item/commandExecution/outputDelta", { itemId, delta }),
    ran: (id, command, { output, code }) =>
      tell(
        "item/completed",
        item(id, command, { status: code === 0 ? "completed" : "failed", aggregatedOutput: output, exitCode: code }),
      ),
    declined: (id, command) => tell("item/completed", item(id, command, { status: "declined" })),
    end(how, message) {
      const error = how === "failed" ? { error: { message, codexErrorInfo: "serverOverloaded" } } : {};
      tell("turn/completed", { turn: { id: `turn_${turns}`, status: how, ...error } });
    },
  };
  return ({ id, method, params }) => {
    switch (method) {
      case "initialize":
        return send({ id, result: { userAgent: "play/0.166.0" } });
      case "thread/start":
      case "thread/resume":
        policy = params.approvalPolicy;
        return send({ id, result: { thread: { id: threadId }, model: "gpt-5.5" } });
      case "turn/start":
        turns += 1;
        send({ id, result: { turn: { id: `turn_${turns}` } } });
        return void turn(voice);
      case "turn/interrupt":
        stop();
        return send({ id, result: {} });
      case "turn/steer":
        return send({ id, result: { turnId: `turn_${turns}` } });
      default:
        return undefined;
    }
  };
}

function claude(): (message: Json) => void {
  const at = (name: string): string | undefined => added[added.indexOf(name) + 1];
  const session = added.includes("--resume") ? at("--resume") : at("--session-id");
  if (added.includes("--resume") && script.some((step) => "forgets" in step)) {
    const error = `No conversation found with session ID: ${session}`;
    send({ type: "result", subtype: "error_during_execution", is_error: true, errors: [error], session_id: session });
    process.stderr.write(`${error}\n`);
    process.exit(1);
  }
  let messages = 0;
  const tell = (message: Json): void => send({ session_id: session, parent_tool_use_id: null, ...message });
  const stream = (event: Json): void => tell({ type: "stream_event", event });
  const block = (content: Json, delta: Json, reason: string): void => {
    messages += 1;
    const id = `msg_${messages}`;
    const usage = { input_tokens: 60, output_tokens: 1, cache_read_input_tokens: 40 };
    stream({ type: "message_start", message: { id, model: "claude-opus-5-5", usage } });
    stream({
      type: "content_block_start",
      index: 0,
      content_block: { ...content, text: content["text"] === undefined ? undefined : "" },
    });
    stream({ type: "content_block_delta", index: 0, delta });
    tell({ type: "assistant", message: { id, model: "claude-opus-5-5", content: [content] } });
    stream({ type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 20 } });
    stream({ type: "message_stop" });
  };
  const result = (callId: string, content: string, isError: boolean, detail?: Json): void =>
    tell({
      type: "user",
      message: { role: "user", content: [{ type: "tool_result", tool_use_id: callId, content, is_error: isError }] },
      tool_use_result: detail,
    });
  const voice: Voice = {
    begin: () => tell({ type: "system", subtype: "init", model: "claude-opus-5-5" }),
    says: (text) => block({ type: "text", text }, { type: "text_delta", text }, "end_turn"),
    async mayRun(id, command) {
      block(
        { type: "tool_use", id, name: "Bash", input: { command } },
        { type: "input_json_delta", partial_json: "{}" },
        "tool_use",
      );
      asked += 1;
      const request = { subtype: "can_use_tool", tool_name: "Bash", input: { command }, tool_use_id: id };
      const { response } = await ask(`${asked}`, { type: "control_request", request_id: `${asked}`, request });
      return response?.behavior === "allow";
    },
    output: () => undefined,
    ran: (id, _command, { output, code }) =>
      result(id, code === 0 ? output : `Exit code ${code}\n${output}`, code !== 0, {
        stdout: output,
        stderr: "",
        interrupted: isStopped,
      }),
    declined: (id) => result(id, "declined", true),
    end(how, message) {
      const ends = {
        completed: { subtype: "success", is_error: false, terminal_reason: "completed" },
        interrupted: { subtype: "error_during_execution", is_error: true, terminal_reason: "aborted_streaming" },
        failed: {
          subtype: "success",
          is_error: true,
          terminal_reason: "api_error",
          api_error_status: 529,
          result: message,
        },
      };
      tell({ type: "result", ...ends[how] });
    },
  };
  let isBusy = false;
  return (message) => {
    if (message["type"] === "control_request") {
      const { request_id, request } = message as { request_id: string; request: Json };
      if (request["subtype"] === "interrupt") stop();
      return send({ type: "control_response", response: { subtype: "success", request_id, response: {} } });
    }
    if (message["type"] !== "user") return undefined;
    tell({ type: "command_lifecycle", command_uuid: message["uuid"], state: "queued" });
    tell({ type: "command_lifecycle", command_uuid: message["uuid"], state: "started" });
    if (isBusy) return undefined;
    isBusy = true;
    turn(voice)
      .catch(() => process.exit(1))
      .finally(() => {
        isBusy = false;
      });
    return undefined;
  };
}

function acp(): (message: Json) => void {
  let prompt: number | undefined;
  const sessionId = "e2205e94-6ffe-4b01-8d1d-c6a83c0e57a1";
  const update = (more: Json): void =>
    send({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update: more } });
  const call = (toolCallId: string, command: string): Json => ({
    toolCallId,
    title: command,
    kind: "execute",
    rawInput: { command },
  });
  const voice: Voice = {
    begin: () => undefined,
    says: (text) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }),
    async mayRun(id, command) {
      update({ sessionUpdate: "tool_call", status: "pending", ...call(id, command) });
      asked += 1;
      const options = [
        { optionId: "proceed_once", kind: "allow_once" },
        { optionId: "cancel", kind: "reject_once" },
      ];
      const params = { sessionId, toolCall: call(id, command), options };
      const { result } = await ask(`${asked}`, {
        jsonrpc: "2.0",
        id: asked,
        method: "session/request_permission",
        params,
      });
      return result?.outcome?.optionId === "proceed_once";
    },
    output: () => undefined,
    ran(toolCallId, _command, { output, code }) {
      const content = [{ type: "content", content: { type: "text", text: output } }];
      update({
        sessionUpdate: "tool_call_update",
        toolCallId,
        status: code === 0 ? "completed" : "failed",
        content,
        rawOutput: { exitCode: code },
      });
    },
    declined: (toolCallId) => update({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" }),
    end(how, message) {
      if (how === "failed")
        return send({ jsonrpc: "2.0", id: prompt, error: { code: -32603, message: `Internal error: 529 ${message}` } });
      return send({
        jsonrpc: "2.0",
        id: prompt,
        result: { stopReason: how === "completed" ? "end_turn" : "cancelled" },
      });
    },
  };
  return ({ id, method }) => {
    switch (method) {
      case "initialize":
        return send({
          jsonrpc: "2.0",
          id,
          result: {
            protocolVersion: 1,
            agentInfo: { name: "play", version: "1.0.0" },
            agentCapabilities: { loadSession: true },
          },
        });
      case "session/new":
        return send({ jsonrpc: "2.0", id, result: { sessionId } });
      case "session/load":
        update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "said before" } });
        return send({ jsonrpc: "2.0", id, result: {} });
      case "session/prompt":
        prompt = id;
        return void turn(voice);
      case "session/cancel":
        return stop();
      default:
        return undefined;
    }
  };
}

const PLAYS = new Map([
  ["codex", codex],
  ["claude", claude],
  ["acp", acp],
]);
const play = PLAYS.get(protocol)?.();
sleepless.on("line", (line) => {
  const message: Json = JSON.parse(line);
  const key = message["method"] === undefined ? `${message["id"] ?? message["response"]?.request_id}` : "";
  const answer = waiting.get(key);
  if (answer === undefined) return play?.(message);
  waiting.delete(key);
  // Both forms: an answer of JSON-RPC, and one of the control protocol.
  answer({ result: message["result"], response: message["response"]?.response });
  return undefined;
});
sleepless.on("close", () => process.exit(0));
