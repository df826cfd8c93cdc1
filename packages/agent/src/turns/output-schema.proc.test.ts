import { startModelServer, type ModelServer } from "@heddle/models/testing";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const outputSchema = {
  type: "object",
  properties: { answer: { type: "integer" } },
  required: ["answer"],
  additionalProperties: false,
};

function open(server: ModelServer, schema: unknown = outputSchema): Promise<TestHeddle> {
  return openTestHeddle({
    providers: [server.provider("openai-responses")],
    settings: { provider: "test", model: "gpt-x", outputSchema: schema },
  });
}

async function run(t: TestHeddle): Promise<{ end: EventBody; events: readonly EventBody[] }> {
  const turn = await t.start("how much is it?");
  const end = (await turn.done).body;
  return { end, events: (await t.events(turn.threadId)).map(({ body }) => body) };
}

test("an answer that keeps to the schema is taken as it is", async () => {
  await using server = await startModelServer({ script: [{ text: '{"answer": 42}' }] });
  await using t = await open(server);
  expect((await run(t)).end).toMatchObject({ status: "completed" });
  expect(server.requests).toHaveLength(1);
});

test("an answer that breaks the schema is sent back once with what is wrong, and the fixed one stands", async () => {
  await using server = await startModelServer({ script: [{ text: '{"answer": "42"}' }, { text: '{"answer": 42}' }] });
  await using t = await open(server);
  const { end, events } = await run(t);
  expect(end).toMatchObject({ status: "completed" });
  expect(server.requests).toHaveLength(2);
  expect(JSON.stringify(server.requests[1]?.body)).toContain("/answer: it must be integer, not string");
  expect(events).toContainEqual(
    expect.objectContaining({ type: "context.added", source: "schema", text: expect.stringContaining("/answer") }),
  );
  const notices = events.flatMap((body) =>
    body.type === "item.completed" && body.item.type === "notice" ? [body.item] : [],
  );
  expect(notices).toMatchObject([{ level: "warning", code: "schema.violated" }]);
  const messages = events.flatMap((body) =>
    body.type === "item.completed" && body.item.type === "agentMessage" ? [body.item.text] : [],
  );
  expect(messages).toEqual(['{"answer": "42"}', '{"answer": 42}']);
});

test("a second answer that breaks the schema fails the turn with what is wrong, after exactly one more request", async () => {
  await using server = await startModelServer({ respond: () => ({ text: "the answer is 42" }) });
  await using t = await open(server);
  const { end } = await run(t);
  expect(end).toMatchObject({
    status: "failed",
    failure: { code: "schema.violated", details: { count: 1, violations: expect.stringContaining("not JSON") } },
  });
  expect(server.requests).toHaveLength(2);
});

test("a model that calls a tool in place of the fixed answer has had its chance; nothing is run", async () => {
  await using server = await startModelServer({
    script: [{ text: "{}" }, { calls: [{ tool: "exec_command", args: { cmd: "touch made" } }] }],
  });
  await using t = await open(server);
  const { end, events } = await run(t);
  expect(end).toMatchObject({ status: "failed", failure: { code: "schema.violated" } });
  expect(events.some(({ type }) => type === "tool.intended")).toBe(false);
});

test("work before the answer is not held against the schema", async () => {
  await using server = await startModelServer({
    script: [
      { text: "let me see", calls: [{ tool: "exec_command", args: { cmd: "true" } }] },
      { text: '{"answer":1}' },
    ],
  });
  await using t = await open(server);
  expect((await run(t)).end).toMatchObject({ status: "completed" });
});

test("a schema that cannot be used is refused before anything is written", async () => {
  await using server = await startModelServer({});
  await using t = await open(server, { type: "objekt" });
  await expect(t.start("go")).rejects.toMatchObject({
    code: "usage.invalid",
    message: expect.stringContaining("#/type"),
  });
  expect(await t.heddle.journal.threads.list({ limit: 10 })).toEqual([]);
  expect(server.requests).toHaveLength(0);
});

test("S34: a pattern that would be matched for hours is given up, and everything else goes on meanwhile", async () => {
  const text = JSON.stringify(Array<string>(1_000).fill(`${"a".repeat(60)}!`));
  await using server = await startModelServer({ respond: () => ({ text }) });
  const pattern = "^(a+)+$";
  await using t = await open(server, { items: { anyOf: [{ pattern }, { pattern: "^b" }] } });
  const startedAt = performance.now();
  const { end } = await run(t);
  expect(end).toMatchObject({ status: "failed", failure: { code: "schema.violated" } });
  expect(performance.now() - startedAt).toBeLessThan(5_000);
});

test("S34: an ordinary pattern is matched in long answers too", async () => {
  const text = JSON.stringify({ id: `${"a1-".repeat(2_000)}z`, [`x-${"y".repeat(100)}`]: 1 });
  await using server = await startModelServer({ respond: () => ({ text }) });
  const schema = {
    properties: { id: { pattern: "^[a-z0-9-]+$" } },
    patternProperties: { "^x-y+$": { type: "number" } },
    additionalProperties: false,
  };
  await using t = await open(server, schema);
  expect((await run(t)).end).toMatchObject({ status: "completed" });
});
