/** Runs one turn whose first question is accepted and whose second is declined. Usage: approval-worker.ts HOME WORKSPACE */
import { openHeddle } from "@heddle/agent";

const [home = "", workspace = ""] = process.argv.slice(2);
const echo = (word: string): { tool: string; args: { cmd: string } } => ({
  tool: "exec_command",
  args: { cmd: `echo ${word} >> effects.log` },
});

await using heddle = await openHeddle({
  home,
  providers: [
    {
      id: "scripted",
      family: "openai",
      script: [{ calls: [echo("approved")] }, { calls: [echo("refused")] }, { text: "done" }],
    },
  ],
  env: process.env,
  isUnattended: false,
});
const { threadId, turnId, done } = await heddle.as("user:owner").startTurn({
  thread: { workspace, origin: "e2e" },
  input: [{ type: "text", text: "do it" }],
  settings: {
    provider: "scripted",
    model: "scripted",
    sandboxMode: "workspace-write",
    networkAccess: false,
    writableRoots: [],
    approvalPolicy: "untrusted",
  },
});
process.stdout.write(`${JSON.stringify({ type: "thread.started", thread_id: threadId })}\n`);

let answers = 0;
for await (const { body } of heddle.journal.tail({
  stream: threadId,
  after: 0,
  signal: new AbortController().signal,
})) {
  if (body.type === "approval.requested") {
    const { approvalId } = body;
    answers += 1;
    await heddle.as("user:owner").answer({ threadId, approvalId, decision: answers === 1 ? "accept" : "decline" });
  }
  if (body.type === "turn.completed" && body.turnId === turnId) break;
}
process.exitCode = (await done).body.status === "completed" ? 0 : 1;
