import type { EventBody, TurnLimits } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddleOptions } from "../../test/test-heddle.ts";

const READ = { tool: "exec_command", args: { cmd: "echo one" } };

async function endOf(
  script: NonNullable<TestHeddleOptions["script"]>,
  limits: TurnLimits,
): Promise<{ terminal: EventBody; bodies: readonly EventBody[] }> {
  await using t = await openTestHeddle({ script, settings: { limits } });
  const turn = await t.start("work");
  const terminal = await turn.done;
  return { terminal: terminal.body, bodies: (await t.events(turn.threadId)).map(({ body }) => body) };
}

const texts = (bodies: readonly EventBody[]): string[] =>
  bodies.flatMap((body) =>
    body.type === "item.completed" && body.item.type === "agentMessage" ? [body.item.text] : [],
  );

test("a turn that needs one request more than it may make fails with the limit, its work and words kept", async () => {
  const { terminal, bodies } = await endOf([{ text: "first", calls: [READ] }, { text: "second" }], { maxRequests: 1 });
  expect(terminal).toMatchObject({
    status: "failed",
    failure: { code: "limit.reached", details: { limit: "turns", allowed: 1, used: 1 } },
  });
  expect(texts(bodies)).toEqual(["first"]);
  expect(bodies.filter(({ type }) => type === "tool.settled")).toHaveLength(1);
  expect(bodies.filter(({ type }) => type === "model.requested")).toHaveLength(1);
});

test("a turn that ends with its last allowed request is completed", async () => {
  const { terminal } = await endOf([{ calls: [READ] }, { text: "second" }], { maxRequests: 2 });
  expect(terminal).toMatchObject({ status: "completed" });
});

test("an answer over the token limit is kept and counted, its calls are not run, and the turn fails", async () => {
  const usage = { inputTokens: 900, outputTokens: 200 };
  const { terminal, bodies } = await endOf([{ text: "said", calls: [READ], usage }], { maxTokens: 1000 });
  expect(terminal).toMatchObject({
    status: "failed",
    failure: { code: "limit.reached", details: { limit: "tokens", allowed: 1000, used: 1100 } },
    usage,
  });
  expect(texts(bodies)).toEqual(["said"]);
  expect(bodies.filter(({ type }) => type === "tool.intended")).toHaveLength(0);
});

test("a final answer over the limit fails the turn too, with the text and the figures in the record", async () => {
  const usage = { inputTokens: 900, outputTokens: 200 };
  const { terminal, bodies } = await endOf([{ text: "all of it", usage }], { maxTokens: 1000 });
  expect(terminal).toMatchObject({ status: "failed", failure: { code: "limit.reached" }, usage });
  expect(texts(bodies)).toEqual(["all of it"]);
});

test("the limits are part of the recorded settings", async () => {
  const limits = { maxRequests: 5, maxTokens: 100_000, maxCostUsd: 1 };
  const { terminal, bodies } = await endOf([{ text: "fine" }], limits);
  expect(terminal).toMatchObject({ status: "completed" });
  expect(bodies.find(({ type }) => type === "turn.admitted")).toMatchObject({ settings: { limits } });
});

test("tools that are not among the allowed ones are not offered and refused when called", async () => {
  await using t = await openTestHeddle({
    script: [{ calls: [READ, { tool: "update_plan", args: { plan: [] } }] }, { text: "done" }],
    settings: { allowedTools: ["update_plan"] },
  });
  const turn = await t.start("work");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const bodies = (await t.events(turn.threadId)).map(({ body }) => body);
  expect(bodies.find(({ type }) => type === "turn.started")).toMatchObject({ envelope: { tools: ["update_plan"] } });
  expect(bodies.flatMap((body) => (body.type === "tool.settled" ? [[body.tool, body.outcome]] : []))).toEqual([
    ["exec_command", "denied"],
    ["update_plan", "ok"],
  ]);
});
