/** Every act is a question at Heddle's door first, and what is declined does not happen. */
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { eachSubject } from "./suite.ts";
import { expectCompleted, itemsOf, messagesOf, ofType } from "./turns.ts";

const ASKING = { approvalPolicy: "untrusted" } as const;

await eachSubject("asks", ({ subject, can, scene }) => {
  test.runIf(can.asksFirst)("before a command, which is accepted", async () => {
    const t = await scene({ runs: "touch made" }, { says: "Made." });
    const turn = await t.start("make it", ASKING);
    const { approvalId, question } = await turn.asked;
    expect(question).toMatchObject({ kind: "command", command: expect.stringContaining("touch made") });
    expect(existsSync(path.join(t.workspace, "made"))).toBe(false);
    await t.client.answerApproval(t.threadId, approvalId, "accept");
    await expectCompleted(turn);
    const events = await t.closed();
    expect(existsSync(path.join(t.workspace, "made"))).toBe(true);
    expect(itemsOf(events, "commandExecution")).toMatchObject([{ status: "completed" }]);
    expect(messagesOf(events)).toEqual(["Made."]);
  });

  test.runIf(can.asksFirst)("before a command, which is declined", async () => {
    const t = await scene({ runs: "touch never" }, { says: "Then not." });
    const turn = await t.start("make it", ASKING);
    const { approvalId } = await turn.asked;
    await t.client.answerApproval(t.threadId, approvalId, "decline");
    await expectCompleted(turn);
    expect(existsSync(path.join(t.workspace, "never"))).toBe(false);
    expect(itemsOf(await t.closed(), "commandExecution")).toMatchObject([{ status: "declined" }]);
  });

  test.runIf(can.asksFirst)("before a file change, which is declined", async () => {
    const t = await scene();
    const file = path.join(t.workspace, "never.txt");
    const name = subject.wantsWholePaths === true ? file : "never.txt";
    t.model.play({ writes: name, content: "never\n" }, { says: "Then not." });
    const turn = await t.start("write it", ASKING);
    const { approvalId, question } = await turn.asked;
    expect(question).toMatchObject({ kind: "fileChange", paths: [expect.stringContaining("never.txt")] });
    await t.client.answerApproval(t.threadId, approvalId, "decline");
    await expectCompleted(turn);
    expect(existsSync(file)).toBe(false);
    expect(itemsOf(await t.closed(), "fileChange")).toMatchObject([{ status: "declined" }]);
  });

  test.runIf(can.asksFirst)("once for one act that is allowed for the thread", async () => {
    const t = await scene({ runs: "touch made" }, { runs: "touch made" }, { says: "Made twice." });
    const turn = await t.start("make it twice", ASKING);
    const { approvalId } = await turn.asked;
    await t.client.answerApproval(t.threadId, approvalId, "acceptForThread");
    await expectCompleted(turn);
    const events = await t.closed();
    expect(ofType(events, "approval.requested")).toHaveLength(1);
    expect(itemsOf(events, "commandExecution").map(({ status }) => status)).toEqual(["completed", "completed"]);
  });

  test.runIf(can.asksFirst)("and is interrupted by the answer that cancels the turn", async () => {
    const t = await scene({ runs: "touch never" }, { says: "Never said." });
    const turn = await t.start("make it", ASKING);
    const { approvalId } = await turn.asked;
    await t.client.answerApproval(t.threadId, approvalId, "cancel");
    expect(await turn.done).toMatchObject({ status: "interrupted" });
    expect(messagesOf(await t.closed())).toEqual([]);
    expect(existsSync(path.join(t.workspace, "never"))).toBe(false);
  });

  test.runIf(can.asksFirst)("and an interrupt takes the question back", async () => {
    const t = await scene({ runs: "touch never" }, { says: "Never said." });
    const turn = await t.start("make it", ASKING);
    const { approvalId } = await turn.asked;
    await t.client.interruptTurn(t.threadId, turn.id);
    expect(await turn.done).toMatchObject({ status: "interrupted", failure: { code: "turn.interrupted" } });
    expect(existsSync(path.join(t.workspace, "never"))).toBe(false);
    expect((await t.client.listApprovals(t.threadId)).data).toEqual([]);
    await expect(t.client.answerApproval(t.threadId, approvalId, "accept")).rejects.toMatchObject({ status: 409 });
    await t.closed();
  });
});
