/**
 * Plays `codex exec --json`: reads its prompt to the end of its input, takes its steps, and exits. Its commands really run.
 * Arguments: a name, the steps as JSON; whatever the runner adds comes after them.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

export type ExecStep =
  | { readonly says: string }
  /** The answer of each prompt after the first. */
  | { readonly saysLater: string }
  | { readonly runs: string }
  | { readonly fails: string }
  | { readonly prints: string }
  | { readonly exits: number }
  /** It begins another conversation in place of one that it does not know, without a word. */
  | { readonly forgets: true }
  /** Its prompts, one line each. */
  | { readonly keeps: string };

const [, , name, scriptText = "[]", ...added] = process.argv;
if (name === "--version") {
  process.stdout.write("codex-cli 0.166.0 (play)\n");
  process.exit(0);
}
const THREAD = "01a1ddef-663f-7992-951d-be2be3662c1a";
const OTHER = "01a1ddef-0000-7992-951d-be2be3662c1a";
const script: readonly ExecStep[] = JSON.parse(scriptText);
const send = (message: object): void => void process.stdout.write(`${JSON.stringify(message)}\n`);
const at = added.indexOf("resume");
const resumed = at < 0 ? undefined : added[at + 1];
const prompt = readFileSync(0, "utf8");

const threadId = resumed !== undefined && script.some((step) => "forgets" in step) ? OTHER : (resumed ?? THREAD);
send({ type: "thread.started", thread_id: threadId });
send({ type: "item.completed", item: { id: "item_0", type: "error", message: "Model metadata not found." } });
send({ type: "turn.started" });

let count = 0;
for (const step of script) {
  count += 1;
  const id = `item_${count}`;
  if ("says" in step) {
    if (resumed !== undefined && script.some((one) => "saysLater" in one)) continue;
    send({ type: "item.completed", item: { id, type: "agent_message", text: step.says } });
  } else if ("saysLater" in step) {
    if (resumed !== undefined)
      send({ type: "item.completed", item: { id, type: "agent_message", text: step.saysLater } });
  } else if ("keeps" in step) {
    const before = existsSync(step.keeps) ? readFileSync(step.keeps, "utf8") : "";
    writeFileSync(step.keeps, `${before}${JSON.stringify({ prompt, args: added })}\n`);
  } else if ("runs" in step) {
    const command = { id, type: "command_execution", command: `/bin/bash -c '${step.runs}'` };
    send({ type: "item.started", item: { ...command, aggregated_output: "", exit_code: null, status: "in_progress" } });
    const { stdout, stderr, status } = spawnSync("sh", ["-c", step.runs], { encoding: "utf8" });
    const how = status === 0 ? "completed" : "failed";
    send({
      type: "item.completed",
      item: { ...command, aggregated_output: `${stdout}${stderr}`, exit_code: status, status: how },
    });
  } else if ("prints" in step) process.stdout.write(`${step.prints}\n`);
  else if ("fails" in step) {
    send({ type: "error", message: step.fails });
    send({ type: "turn.failed", error: { message: step.fails } });
    process.exit(1);
  } else if ("exits" in step) {
    process.stderr.write("something broke inside\n");
    process.exit(step.exits);
  }
}
// It counts over the whole conversation.
const turns = resumed === undefined ? 1 : 2;
const usage = { input_tokens: 100, cached_input_tokens: 40, output_tokens: 20, reasoning_output_tokens: 5 };
const total = Object.fromEntries(Object.entries(usage).map(([key, value]) => [key, value * turns]));
send({ type: "turn.completed", usage: { ...total, cache_write_input_tokens: 0 } });
