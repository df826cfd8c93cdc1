/** The limits of the home for a day, at every admission: of turns, and of the turns of tasks. */
import { expect, test } from "vitest";
import { openTestHarness } from "../../test/test-harness.ts";

test("once the tokens of a day are used up no turn begins, nothing is stored of it, and a task waits for the next day", async () => {
  await using t = await openTestHarness({ script: [{ text: "one" }, { text: "two" }], dayLimits: { tokens: 1 } });
  const by = t.heddle.as("user:owner");
  const thread = await by.createThread({ workspace: t.workspace, origin: "test" });
  const { id } = await t.add({ checks: [] });
  await t.work();
  const [first] = await t.settled(id);
  expect(first).toMatchObject({ state: "claimed" });
  const settings = await t.heddle.lastSettings(first?.threadId ?? "");
  if (settings === undefined) throw new Error("it had no turn");
  const before = await t.heddle.journal.position();
  const start = by.startTurn({ thread, input: [{ type: "text", text: "go" }], settings });
  await expect(start).rejects.toMatchObject({
    code: "limit.reached",
    message: expect.stringContaining("day_limits.tokens"),
    details: { limit: "day", until: expect.any(Number) },
  });
  expect(await t.heddle.journal.position()).toBe(before);
  const { id: late } = await t.add({ name: "late", checks: [], maxNudges: 0 });
  const waiting = await t.until(late, ({ state }) => state === "waiting");
  const midnight = new Date(new Date().toISOString().slice(0, 10)).getTime() + 24 * 3_600_000;
  expect(waiting).toMatchObject({
    nextAt: midnight,
    wait: { message: expect.stringContaining("the limit of this day") },
  });
  expect(waiting.spent).toMatchObject({ turns: 0, tokens: 0 });
});
