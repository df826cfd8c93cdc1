import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { openTestHeddle } from "../../test/test-heddle.ts";

const Asked = z.object({
  model: z.string(),
  reasoning: z.object({ effort: z.string(), summary: z.string().optional() }).optional(),
  service_tier: z.string().optional(),
});

test("what a client changes of a running turn counts from its next request on, for that turn alone", async () => {
  await using server = await startModelServer({
    respond: ({ answers }) =>
      answers === 0
        ? { calls: [{ tool: "exec_command", args: { cmd: "until test -e go; do sleep 0.05; done" } }] }
        : { text: "done" },
  });
  await using t = await openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-5.5", effort: "high", serviceTier: "priority" },
  });
  const turn = await t.start("go");
  const item = await t.next(turn.threadId, "item.started");
  expect(item.turnId).toBe(turn.turnId);
  await t.next(turn.threadId, "tool.intended");
  const acts = t.heddle.as("user:owner");
  await acts.changeTurn(turn.turnId, { effort: "medium" });
  await acts.changeTurn(turn.turnId, { effort: "low", summary: "detailed", serviceTier: null });
  await acts.changeTurn(turn.turnId, { model: "gpt-5.6-sol" });
  await expect(acts.changeTurn(turn.turnId, { model: "unheard-of" })).rejects.toMatchObject({ code: "model.unknown" });
  await writeFile(join(t.workspace, "go"), "");
  await turn.done;
  await expect(acts.changeTurn(turn.turnId, { effort: "low" })).rejects.toMatchObject({ code: "turn.not-found" });
  await (
    await t.start("again", { thread: turn.threadId })
  ).done;
  const high = { model: "gpt-5.5", reasoning: { effort: "high", summary: "auto" }, service_tier: "priority" };
  expect(server.requests.map(({ body }) => Asked.parse(body))).toEqual([
    high,
    { model: "gpt-5.6-sol", reasoning: { effort: "low", summary: "detailed" } },
    high,
  ]);
});
