import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";

const script = [
  { calls: [{ tool: "exec_command", args: { cmd: "touch made-by-agent" } }] },
  { calls: [{ tool: "exec_command", args: { cmd: "touch made-by-agent" } }] },
  { text: "done" },
];

test("an answer from another process lets the call run, and a second answer is refused", async () => {
  await using t = await openTestHeddle({ script, isUnattended: false, settings: { approvalPolicy: "untrusted" } });
  const turn = await t.start("touch it");
  const { approvalId, question } = await t.next(turn.threadId, "approval.requested");
  expect(question).toMatchObject({ kind: "command", command: "touch made-by-agent" });
  expect(existsSync(join(t.workspace, "made-by-agent"))).toBe(false);

  await using other = await openTestHeddle({ folder: t.folder, isUnattended: false });
  const given = { threadId: turn.threadId, approvalId };
  await other.heddle.as("user:owner").answer({ ...given, decision: "acceptForThread" });
  await expect(t.heddle.as("user:owner").answer({ ...given, decision: "decline" })).rejects.toMatchObject({
    code: "approval.already-resolved",
    message: `question ${approvalId} is already answered: acceptForThread by user:owner`,
  });
  expect((await turn.done).body.status).toBe("completed");
  expect(existsSync(join(t.workspace, "made-by-agent"))).toBe(true);
  const asked = (await t.events(turn.threadId)).filter(({ body }) => body.type === "approval.requested");
  // Accepted for the thread: the same command was not asked about again.
  expect(asked).toHaveLength(1);
});

test("a declined call is not run, is told to the model, and the turn continues", async () => {
  await using t = await openTestHeddle({
    script: [script[0]!, { text: "fine" }],
    isUnattended: false,
    settings: { approvalPolicy: "untrusted" },
  });
  const turn = await t.start("touch it");
  const { approvalId } = await t.next(turn.threadId, "approval.requested");
  await t.heddle.as("user:owner").answer({ threadId: turn.threadId, approvalId, decision: "decline" });
  expect((await turn.done).body.status).toBe("completed");
  expect(existsSync(join(t.workspace, "made-by-agent"))).toBe(false);
  const events = (await t.events(turn.threadId)).map(({ body }) => body);
  expect(events.find(({ type }) => type === "tool.settled")).toMatchObject({ outcome: "denied" });
  // The reason is in its end, and only there.
  const [started, ended] = events.filter((body) => "item" in body && body.item.type === "commandExecution");
  expect(started).toMatchObject({ type: "item.started", item: { status: "inProgress" } });
  expect(started).not.toHaveProperty("item.error");
  expect(ended).toMatchObject({ type: "item.completed", item: { status: "declined", error: expect.any(String) } });
});

test("in an unattended run policy answers through the same events", async () => {
  await using t = await openTestHeddle({
    script: [script[0]!, { text: "fine" }],
    settings: { approvalPolicy: "untrusted" },
  });
  const turn = await t.start("touch it");
  expect((await turn.done).body.status).toBe("completed");
  const answer = (await t.events(turn.threadId)).find(({ body }) => body.type === "approval.resolved");
  expect(answer).toMatchObject({ author: "policy:unattended", body: { decision: "decline" } });
  expect(existsSync(join(t.workspace, "made-by-agent"))).toBe(false);
});

test("an interrupt while a question is open resolves it and ends the turn", async () => {
  await using t = await openTestHeddle({ script, isUnattended: false, settings: { approvalPolicy: "untrusted" } });
  const turn = await t.start("touch it");
  await t.next(turn.threadId, "approval.requested");
  await t.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "never mind" });
  expect((await turn.done).body.status).toBe("interrupted");
  const answers = (await t.events(turn.threadId)).filter(({ body }) => body.type === "approval.resolved");
  expect(answers).toHaveLength(1);
  expect(answers[0]).toMatchObject({ author: "system", body: { decision: "cancel" } });
});

test("an answer to a question nobody asked is refused", async () => {
  await using t = await openTestHeddle({ isUnattended: false });
  const threadId = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
  await expect(
    t.heddle.as("user:owner").answer({ threadId, approvalId: "apr_none", decision: "accept" }),
  ).rejects.toMatchObject({
    code: "approval.not-found",
  });
});
