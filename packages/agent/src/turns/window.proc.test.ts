import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";

test("12.19: unless a larger window is asked for, a context is compacted before its price doubles", async () => {
  const usage = { inputTokens: 250_000, outputTokens: 9 };
  await using server = await startModelServer({ respond: () => ({ text: "answer", usage }) });
  const providers = [server.provider("openai-responses", { vendor: "openai" })];
  const compactions = async (window: object): Promise<number> => {
    await using t = await openTestHeddle({ providers, settings: { provider: "test", model: "gpt-5.5", ...window } });
    const thread = await t.heddle.as("user:owner").createThread({ workspace: t.workspace, origin: "test" });
    for (const text of ["one", "two ".repeat(40_000), "three"]) await (await t.start(text, { thread })).done;
    return (await t.events(thread)).filter(({ body }) => body.type === "context.compacted").length;
  };
  expect(await compactions({})).toBeGreaterThan(0);
  expect(await compactions({ contextTokens: 1_050_000 })).toBe(0);
});
