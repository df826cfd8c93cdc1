// Answers every question of every thread, and says what turns end with. First: heddle serve. Then:
//   node answer-approvals.ts [accept | decline] [--once]
import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { HeddleClient } from "heddle/client";

const home = process.env["HEDDLE_HOME"] ?? join(homedir(), ".heddle");
const { url } = JSON.parse(await readFile(join(home, "serve.json"), "utf8")) as { url: string };
const token = (await readFile(join(home, "serve.token"), "utf8")).trim();
const decision = process.argv.includes("accept") ? "accept" : "decline";
const isOnce = process.argv.includes("--once");
const say = (words: string): boolean => process.stdout.write(`${words}\n`);

const heddle = new HeddleClient({ url, token });
const { version, principal } = await heddle.server();
say(`connected to ${version} as ${principal.name}`);

// From the beginning of the record: what was asked before this program started is answered too, unless somebody has.
for await (const heard of heddle.follow({ onReconnect: ({ delayMs }) => say(`again in ${Math.round(delayMs)} ms`) })) {
  if (heard.kind !== "event") continue;
  const { threadId, body } = heard.event;
  if (body.type === "approval.requested") {
    const open = (await heddle.listApprovals(threadId)).data.some(({ id }) => id === body.approvalId);
    if (!open) continue;
    await heddle.answerApproval(threadId, body.approvalId, decision);
    say(`${decision}: ${body.question.kind}`);
  }
  if (body.type === "turn.completed") {
    say(`${threadId} ${body.status}`);
    if (isOnce) break;
  }
}
