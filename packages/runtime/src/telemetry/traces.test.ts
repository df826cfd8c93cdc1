import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { thisHolder } from "@heddle/agent";
import { openJournal, type Journal } from "@heddle/journal";
import { NO_USAGE, newThreadId, newTurnId, type EventBody, type TurnSettings } from "@heddle/protocol";
import { SPANS } from "@heddle/protocol/measure";
import { expect, test } from "vitest";
import { openCollector, type ReceivedSpan } from "../testing/collector.ts";
import { createExporter } from "./otlp.ts";
import { openTraces } from "./open-traces.ts";

const SETTINGS: TurnSettings = {
  provider: "mock",
  model: "m",
  sandboxMode: "read-only",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
};
const SECRET = "words-that-nobody-else-may-read";
const CALLER = { traceId: "4bf92f3577b34da6a3ce929d0e0e4736", spanId: "00f067aa0ba902b7" };
const log = (line: string): never => {
  throw new Error(line);
};

async function openStore(): Promise<{ readonly journal: Journal } & AsyncDisposable> {
  const home = await mkdtemp(path.join(tmpdir(), "heddle-traces-"));
  const journal = await openJournal({ home });
  return {
    journal,
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]();
      await rm(home, { recursive: true });
    },
  };
}

function turn(turnId: string, more: object = {}): readonly EventBody[] {
  const requestId = `req_${turnId}`;
  const call = { callId: `call_${turnId}`, itemId: `item_${turnId}`, tool: "exec_command" };
  const usage = { ...NO_USAGE, inputTokens: 100, outputTokens: 7 };
  const input = [{ type: "text" as const, text: SECRET }];
  return [
    { type: "turn.admitted", v: 1, turnId, input, settings: SETTINGS, holder: thisHolder(), ...more },
    { type: "model.requested", v: 1, turnId, requestId, provider: "mock", model: "m", requestBytes: 10 },
    { type: "model.responded", v: 1, turnId, requestId, output: [], stopReason: SECRET, usage, costUsd: 0.25 },
    { type: "tool.intended", v: 1, turnId, ...call, arguments: { cmd: SECRET }, isReadOnly: true },
    {
      type: "tool.settled",
      v: 1,
      turnId,
      ...call,
      outcome: "failed",
      failure: { code: "tool.failed", message: SECRET },
      output: input,
    },
    { type: "turn.completed", v: 1, turnId, status: "completed", usage, costUsd: 0.25, durationMs: 5 },
  ];
}

function attributesOf({ attributes }: ReceivedSpan): Readonly<Record<string, unknown>> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}

test("a turn is one trace, continued from its caller, with its requests and calls and no word of either", async () => {
  await using collector = await openCollector();
  await using store = await openStore();
  const { journal } = store;
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: "x-key=of%20the%20collector" };
  const traces = await openTraces({ journal, config: {}, env, log });
  const [stream, turnId] = [newThreadId(), newTurnId()];
  const traceparent = `00-${CALLER.traceId}-${CALLER.spanId}-01`;
  const created: EventBody = { type: "thread.created", v: 1, workspace: "/w", origin: "test" };
  const [first, ...rest] = turn(turnId, { traceparent });
  await journal.append({ stream, author: "user:owner", events: [created, ...(first === undefined ? [] : [first])] });
  for (const event of rest) await journal.append({ stream, author: "user:owner", events: [event] });
  // Another process carries this one out.
  const foreign = turn(newTurnId(), { holder: { ...thisHolder(), pid: 1 } });
  await journal.append({ stream: newThreadId(), author: "user:owner", events: foreign });
  await traces[Symbol.asyncDispose]();
  const { spans, headers } = collector;
  const root = spans.find(({ name }) => name === "turn");
  expect(root).toMatchObject({ traceId: CALLER.traceId, parentSpanId: CALLER.spanId, kind: 2 });
  expect(root).not.toHaveProperty("status");
  expect(spans.filter(({ name }) => name === "turn")).toHaveLength(1);
  const below = spans.filter((span) => span !== root && span.name !== "turn");
  expect(new Set(below.map(({ name }) => name))).toEqual(new Set(["append", "model request", "tool call"]));
  for (const { traceId, parentSpanId } of below)
    expect([traceId, parentSpanId]).toEqual([CALLER.traceId, root?.spanId]);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  const [request, call] = ["model request", "tool call"].map((name) => spans.find((span) => span.name === name));
  expect(request === undefined ? {} : attributesOf(request)).toEqual({
    "gen_ai.provider.name": "mock",
    "gen_ai.request.model": "m",
    "gen_ai.usage.input_tokens": "100",
    "gen_ai.usage.output_tokens": "7",
    "heddle.cost_usd": 0.25,
  });
  expect(call === undefined ? {} : attributesOf(call)).toEqual({
    "gen_ai.tool.name": "exec_command",
    "heddle.tool.outcome": "failed",
    "error.type": "tool.failed",
  });
  expect(call?.status).toEqual({ code: 2 });
  expect(collector.bodies.join("")).not.toContain(SECRET);
  expect(headers[0]).toMatchObject({ "x-key": "of the collector", "content-type": "application/json" });
  expect(journal.redactor.text("of the collector")).not.toBe("of the collector");
});

test("without a caller the trace has the id of the turn, and what a turn left open ends with it", async () => {
  await using collector = await openCollector();
  await using store = await openStore();
  const config = { telemetry: { endpoint: `${collector.url}/`, service_name: "mine" } };
  const traces = await openTraces({ journal: store.journal, config, env: {}, log });
  const [stream, turnId] = [newThreadId(), newTurnId()];
  const events = turn(turnId).filter(({ type }) => type !== "model.responded" && type !== "tool.settled");
  await store.journal.append({ stream, author: "user:owner", events });
  await traces[Symbol.asyncDispose]();
  const traceId = turnId.replaceAll("-", "");
  const ended = collector.spans.filter(({ name }) => name !== "append");
  expect(ended.map((span) => [span.name, span.traceId, span.status?.code])).toEqual([
    ["model request", traceId, 2],
    ["tool call", traceId, 2],
    ["turn", traceId, undefined],
  ]);
  expect(collector.bodies[0]).toContain('"service.name","value":{"stringValue":"mine"}');
});

test("a collector that hangs or is away takes no time and no memory: what it does not take is dropped and counted", async () => {
  await using hanging = await openCollector({ hangs: true });
  for (const url of [hanging.url, "http://127.0.0.1:1"]) {
    const dropped: number[] = [];
    using _ = SPANS.listen(({ outcome, count }) => {
      if (outcome === "dropped") dropped.push(count);
    });
    const exporter = createExporter({ url: new URL(url), headers: {}, serviceName: "x", maxWaiting: 100, everyMs: 1 });
    const span = { traceId: "0", spanId: "0", parentId: undefined, name: "n", kind: "internal" } as const;
    const spans = Array.from({ length: 50 }, () => ({
      ...span,
      startMs: 1,
      endMs: 2,
      attributes: {},
      failure: undefined,
    }));
    for (let round = 0; round < 20; round += 1) exporter.add(spans);
    await exporter.close(50);
    expect(dropped.reduce((sum, count) => sum + count, 0)).toBe(1_000);
  }
});

test("an address that is none is refused with the configuration", async () => {
  await using store = await openStore();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "ftp://collector" };
  await expect(openTraces({ journal: store.journal, config: {}, env, log })).rejects.toMatchObject({
    code: "config.invalid",
  });
});
