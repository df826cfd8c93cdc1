import { HeddleError, NO_USAGE, type EventBody, type StoredEvent } from "@heddle/protocol";
import { RunResult } from "@heddle/protocol/run-result";
import { expect, test } from "vitest";
import { reportOf, transcriptOf } from "./report.ts";
import { runFinished, runResult, type RunFacts } from "./result.ts";
import { sumUp } from "./run-summary.ts";

const BODIES: readonly EventBody[] = [
  { type: "model.requested", v: 1, turnId: "t", requestId: "r1", provider: "p", model: "m", requestBytes: 10 },
  {
    type: "model.retried",
    v: 1,
    turnId: "t",
    requestId: "r1",
    attempt: 1,
    maxAttempts: 3,
    delayMs: 5,
    cause: { code: "provider.cut", message: "cut" },
  },
  { type: "model.requested", v: 1, turnId: "t", requestId: "r1", provider: "p", model: "m", requestBytes: 10 },
  {
    type: "model.responded",
    v: 1,
    turnId: "t",
    requestId: "r1",
    output: [],
    stopReason: "toolCalls",
    usage: { ...NO_USAGE, inputTokens: 7 },
    costUsd: 0.5,
  },
  {
    type: "tool.intended",
    v: 1,
    turnId: "t",
    callId: "c1",
    itemId: "i1",
    tool: "bash",
    arguments: { command: "cat secret-words" },
    isReadOnly: false,
  },
  { type: "tool.settled", v: 1, turnId: "t", callId: "c1", itemId: "i1", tool: "bash", outcome: "ok", output: [] },
  {
    type: "tool.settled",
    v: 1,
    turnId: "t",
    callId: "c2",
    itemId: "i2",
    tool: "write",
    outcome: "denied",
    failure: { code: "path.outside", message: "no" },
    output: [],
  },
  { type: "item.completed", v: 1, turnId: "t", item: { type: "agentMessage", id: "i3", text: "so far" } },
  {
    type: "turn.completed",
    v: 1,
    turnId: "t",
    status: "failed",
    usage: NO_USAGE,
    durationMs: 4,
    failure: { code: "limit.reached", message: "enough", details: { limit: "turns", allowed: 1, used: 1 } },
  },
];

const EVENTS: readonly StoredEvent[] = BODIES.map((body, index) => ({
  position: index + 1,
  stream: "thread",
  version: index + 1,
  id: `e${index}`,
  at: 1_700_000_000_000 + index,
  author: "system",
  body,
  hash: "h",
}));

test("a report has usage by request, calls with digests of their input, decisions, retries and failures", () => {
  const report = reportOf(EVENTS);
  expect(report).toMatchObject({
    type: "heddle.run.report",
    version: 1,
    requests: [{ request_id: "r1", duration_ms: 3, usage: { inputTokens: 7 }, cost_usd: 0.5 }],
    tools: [
      { call_id: "c1", decision: "allowed", outcome: "ok", is_read_only: false },
      { call_id: "c2", decision: "denied", outcome: "not-run", failure: { code: "path.outside" } },
    ],
    retries: [{ request_id: "r1", attempt: 1, cause: { code: "provider.cut" } }],
    failures: [
      { kind: "tool", code: "path.outside" },
      { kind: "turn", code: "limit.reached" },
    ],
  });
  expect(JSON.stringify(report)).not.toContain("secret-words");
  expect(transcriptOf(EVENTS)).toMatchObject({ items: [{ item: { text: "so far" } }] });
});

function facts(over: Partial<RunFacts>, bodies: readonly EventBody[] = BODIES): RunFacts {
  const summing = sumUp();
  for (const body of bodies) summing.add(body);
  return {
    heddleVersion: "1",
    runId: "r",
    startedAt: 0,
    durationMs: 12.4,
    exitCode: 6,
    failure: undefined,
    summary: summing.now,
    threadId: "thread",
    turnId: "t",
    threadUsage: NO_USAGE,
    attempts: [],
    outputSchema: undefined,
    artifactRoot: undefined,
    paths: {},
    git: null,
    manifest: undefined,
    ...over,
  };
}

test("a failed turn gives a result with its reason, its words so far and what was denied", () => {
  const result = runResult(facts({}));
  expect(RunResult.parse(result)).toEqual(result);
  expect(result).toMatchObject({
    status: "failed",
    reason: "limit.reached",
    details: { limit: "turns" },
    retryable: false,
    response: "so far",
    is_response_final: false,
    num_turns: 1,
    cost: { usd: 0.5 },
    permission_denials: [{ tool: "write", call_id: "c2", code: "path.outside" }],
    duration_ms: 12,
  });
  expect(runFinished(result)).toEqual({
    type: "heddle.run.finished",
    status: "failed",
    exit_code: 6,
    run_id: "r",
    thread_id: "thread",
    reason: "limit.reached",
    retryable: false,
  });
});

test("a failure outside the turn is the reason, and a stop by a signal is a cancelled run", () => {
  const failure = new HeddleError("turn.interrupted", "interrupted by SIGINT");
  expect(runResult(facts({ failure }, []))).toMatchObject({ status: "cancelled", reason: "turn.interrupted" });
  const busy = new HeddleError("store.busy", "busy");
  expect(runResult(facts({ failure: busy }, []))).toMatchObject({ status: "failed", retryable: true });
});

test("a structured answer is taken apart, and one that is not JSON is invalid", () => {
  const done = (text: string): readonly EventBody[] => [
    { type: "item.completed", v: 1, turnId: "t", item: { type: "agentMessage", id: "i", text } },
    { type: "turn.completed", v: 1, turnId: "t", status: "completed", usage: NO_USAGE, durationMs: 1 },
  ];
  const schema = { outputSchema: { type: "object" } };
  const valid = runResult(facts(schema, done(`{"a":1}`)));
  expect(valid.structured_result).toMatchObject({ status: "valid", value: { a: 1 } });
  expect(valid.structured_result?.schema_digest).toMatch(/^[0-9a-f]{64}$/);
  expect(runResult(facts(schema, done("prose"))).structured_result).toMatchObject({ status: "invalid" });
  expect(runResult(facts({}, done("prose"))).structured_result).toBeNull();
});
