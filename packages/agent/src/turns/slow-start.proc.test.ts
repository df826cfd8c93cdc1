import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";

test("12.13: a turn whose start took too long has it on record before its first request, and others do not", async () => {
  await using slow = await openTestHeddle({ script: [{ text: "ok" }], slowStartMs: 1 });
  const turn = await slow.start("go");
  await turn.done;
  const bodies = (await slow.events(turn.threadId)).map(({ body }) => body);
  const types = bodies.map((body) => (body.type === "item.completed" ? body.item.type : body.type));
  expect(types.indexOf("notice")).toBeGreaterThan(types.indexOf("turn.started"));
  expect(types.indexOf("notice")).toBeLessThan(types.indexOf("model.requested"));
  const notices = bodies.flatMap((body) =>
    body.type === "item.completed" && body.item.type === "notice" ? [body.item] : [],
  );
  expect(notices).toEqual([
    expect.objectContaining({
      code: "start.slow",
      message: expect.stringMatching(/is at the step: .*; steps: look at the thread/),
    }),
  ]);
  const second = await slow.heddle.as("user:owner").startTurn({
    thread: turn.threadId,
    input: [{ type: "text", text: "again" }],
    settings: slow.settings,
  });
  await second.done;

  await using quick = await openTestHeddle({ script: [{ text: "ok" }], slowStartMs: 60_000 });
  const well = await quick.start("go");
  await well.done;
  expect(JSON.stringify(await quick.events(well.threadId))).not.toContain("start.slow");
});
