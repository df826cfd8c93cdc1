/** What comes while a turn runs: more input, and the word to stop. */
import { expect, test } from "vitest";
import { marked } from "../../e2e/processes.ts";
import { eachSubject, until } from "./suite.ts";
import { commandStart, expectCompleted, itemsOf, messagesOf, ofType } from "./turns.ts";

/** It is told to stop, and ended when it does not. */
const INTERRUPT_MS = 6000;
const STALLED = { kind: "stall", at: "after-last-delta" } as const;

await eachSubject("in between", ({ can, scene }) => {
  test.runIf(can.steering)("input while a command runs reaches the model in the same turn", async () => {
    const t = await scene({ runs: "until [ -e go ]; do sleep 0.1; done" }, { says: "Then that." });
    const turn = await t.start("wait");
    await turn.sees(commandStart);
    await t.client.steerTurn(t.threadId, turn.id, "and also the other thing");
    await turn.sees((heard) => (heard.kind === "event" && heard.event.body.type === "turn.steered" ? true : undefined));
    await t.touch("go");
    await expectCompleted(turn);
    const events = await t.closed();
    expect(t.model.requests.at(-1)?.source).toContain("and also the other thing");
    expect(ofType(events, "turn.completed")).toHaveLength(1);
    const told = itemsOf(events, "userMessage").map(({ content }) => content);
    expect(told).toEqual([[{ type: "text", text: "wait" }], [{ type: "text", text: "and also the other thing" }]]);
  });

  test.runIf(!can.steering)("input while a turn runs is refused", async () => {
    const t = await scene({ runs: "until [ -e go ]; do sleep 0.1; done" }, { says: "Done." });
    const turn = await t.start("wait");
    await turn.sees(commandStart);
    const refused = t.client.steerTurn(t.threadId, turn.id, "and also the other thing");
    await expect(refused).rejects.toMatchObject({ code: "runner.unsupported" });
    await t.touch("go");
    await expectCompleted(turn);
    await t.closed();
  });

  test("an interrupt while it speaks ends the turn, and the thread continues", async () => {
    const t = await scene({ fault: STALLED, before: { says: "The first half of a long answer." } });
    const turn = await t.start("tell me");
    await t.model.asked(1);
    const before = performance.now();
    await t.client.interruptTurn(t.threadId, turn.id);
    expect(await turn.done).toMatchObject({ status: "interrupted", failure: { code: "turn.interrupted" } });
    expect(performance.now() - before).toBeLessThan(INTERRUPT_MS);
    await t.closed();
    t.model.play({ says: "Here again." });
    await expectCompleted(await t.start("go on"));
    expect(messagesOf(await t.closed()).at(-1)).toBe("Here again.");
  });

  test("an interrupt in a command ends it, and the thread continues", async () => {
    const mark = `300.${Math.floor(Math.random() * 1e9)}`;
    const t = await scene({ runs: `echo mark; sleep ${mark}` }, { says: "Never said." });
    const turn = await t.start("wait");
    await turn.sees(commandStart);
    await until(() => marked(mark).length > 0, "the command runs");
    const before = performance.now();
    await t.client.interruptTurn(t.threadId, turn.id);
    expect(await turn.done).toMatchObject({ status: "interrupted", failure: { code: "turn.interrupted" } });
    expect(performance.now() - before).toBeLessThan(INTERRUPT_MS);
    expect(marked(mark)).toEqual([]);
    const events = await t.closed();
    expect(itemsOf(events, "commandExecution")).toMatchObject([{ status: "interrupted" }]);
    t.model.play({ says: "Here again." });
    await expectCompleted(await t.start("go on"));
    expect(messagesOf(await t.closed())).toEqual(["Here again."]);
  });

  test("an interrupt in a command that ignores TERM, with a child in a session of its own, ends both", async () => {
    const [mark, other] = [`300.${Math.floor(Math.random() * 1e9)}`, `301.${Math.floor(Math.random() * 1e9)}`];
    const t = await scene({ runs: `trap '' TERM INT; setsid sleep ${other} & echo begun; sleep ${mark}` });
    const turn = await t.start("wait");
    await turn.sees(commandStart);
    await until(() => marked(mark).length > 0 && marked(other).length > 0, "both run");
    const before = performance.now();
    await t.client.interruptTurn(t.threadId, turn.id);
    expect(await turn.done).toMatchObject({ status: "interrupted" });
    expect(performance.now() - before).toBeLessThan(INTERRUPT_MS);
    expect([...marked(mark), ...marked(other)]).toEqual([]);
    await t.closed();
  });

  test("what a command leaves behind ends with the turn", async () => {
    const mark = `300.${Math.floor(Math.random() * 1e9)}`;
    const t = await scene({ runs: `setsid sleep ${mark} > /dev/null 2>&1 < /dev/null & echo left` }, { says: "Left." });
    await expectCompleted(await t.start("leave it"));
    expect(marked(mark)).toEqual([]);
    await t.closed();
  });

  test.runIf(can.liveOutput)("output of a command comes while it runs", async () => {
    const t = await scene({ runs: "until [ -e go ]; do echo early; sleep 0.2; done; echo late" }, { says: "Ran." });
    const turn = await t.start("run it");
    await turn.sees((heard) => (heard.kind === "delta" && heard.delta.delta.includes("early") ? true : undefined));
    await t.touch("go");
    await expectCompleted(turn);
    const [item] = itemsOf(await t.closed(), "commandExecution");
    expect(item?.output).toMatch(/^(early\n)+late\n$/);
  });
});
