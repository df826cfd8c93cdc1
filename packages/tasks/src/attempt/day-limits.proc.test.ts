/** The limits of the home for a day, at every admission: of turns, and of the turns of tasks. */
import { mkdir } from "node:fs/promises";
import path from "node:path";
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

test("turns of a day and what one workspace uses are limited, each by its name, and other workspaces go on", async () => {
  const limits = { turns: 3, workspaces: {} as Record<string, { tokens: number }> };
  await using t = await openTestHarness({
    script: Array.from({ length: 4 }, () => ({ text: "done" })),
    dayLimits: limits,
  });
  limits.workspaces[t.workspace] = { tokens: 1 };
  const { id } = await t.add({ checks: [] });
  await t.work();
  const [first] = await t.settled(id);
  const settings = await t.heddle.lastSettings(first?.threadId ?? "");
  if (settings === undefined) throw new Error("it had no turn");
  const { journal } = t.heddle;
  const by = t.heddle.as("user:owner");
  const input = [{ type: "text" as const, text: "go" }];
  const begin = (workspace: string) => by.startTurn({ thread: { workspace, origin: "test" }, input, settings });
  await expect(begin(t.workspace)).rejects.toMatchObject({
    code: "limit.reached",
    message: expect.stringMatching(/in .*tokens were used \(day_limits\.workspaces\.tokens\); turns begin again at /),
    details: { limit: "day", name: "tokens", max: 1, used: expect.any(Number), workspace: t.workspace },
  });
  const other = path.join(t.workspace, "..", "other");
  await mkdir(other);
  for (let begun = 1; begun < 3; begun += 1) await (await begin(other)).done;
  const before = await journal.position();
  await expect(begin(other)).rejects.toMatchObject({
    code: "limit.reached",
    message: expect.stringContaining("3 of 3 turns began (day_limits.turns)"),
    details: { limit: "day", name: "turns", used: 3, max: 3, until: expect.any(Number) },
  });
  expect(await journal.position()).toBe(before);
  const day = 24 * 3_600_000;
  expect([
    await journal.threads.turnsSince(Date.now() - day),
    await journal.threads.turnsSince(Date.now() + day),
  ]).toEqual([3, 0]);
});
