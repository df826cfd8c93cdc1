import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CodexExecLine, codexExecSchema, onlyCodexFields } from "./codex-exec-schema.ts";

const PUBLISHED = new URL("../../../protocol/schema/exec-events.json", import.meta.url);

test("the published schema is the one the types come from (heddle schema exec > packages/protocol/schema/exec-events.json)", () => {
  expect(JSON.parse(readFileSync(PUBLISHED, "utf8"))).toEqual(JSON.parse(JSON.stringify(codexExecSchema())));
});

test("every line that Codex prints is a line of this schema, but for what it leaves out of an end", () => {
  const recorded = [
    { type: "thread.started", thread_id: "01a1ddef-663f-7992-951d-be2be3662c1a" },
    { type: "item.completed", item: { id: "item_0", type: "error", message: "Model metadata not found." } },
    { type: "item.completed", item: { id: "item_1", type: "reasoning", text: "Thinking about it" } },
    { type: "error", message: "Reconnecting... 1/2 (stream disconnected before completion)" },
    { type: "turn.failed", error: { message: "stream disconnected before completion" } },
  ];
  for (const line of recorded) expect(CodexExecLine.parse(line)).toEqual(line);
});

test("an unknown type, and an item without its fields, are not lines", () => {
  expect(CodexExecLine.safeParse({ type: "turn.paused" }).success).toBe(false);
  expect(CodexExecLine.safeParse({ type: "item.started", item: { id: "item_0", type: "file_change" } }).success).toBe(
    false,
  );
});

test("a line for a library written for Codex has no field of Heddle's own, and is left out when it is Heddle's altogether", () => {
  const usage = {
    input_tokens: 2,
    cached_input_tokens: 0,
    cache_write_input_tokens: 0,
    output_tokens: 1,
    reasoning_output_tokens: 0,
  };
  const figures = { usage, thread_usage: usage, cost_usd: 0.1, duration_ms: 5 };
  const call = {
    id: "item_1",
    type: "mcp_tool_call",
    server: "s",
    tool: "t",
    arguments: { code: 1 },
    result: null,
  } as const;
  const failed = { ...call, error: { message: "no" }, status: "failed" } as const;
  const command = { id: "item_0", type: "command_execution", command: "x", aggregated_output: "" } as const;
  const ran = { ...command, exit_code: -1, status: "failed" } as const;
  const shown: readonly (readonly [CodexExecLine, unknown])[] = [
    [{ type: "turn.started", turn_id: "t", sandbox: "none" }, { type: "turn.started" }],
    [
      { type: "turn.completed", ...figures },
      { type: "turn.completed", usage },
    ],
    [
      { type: "turn.failed", error: { message: "m", code: "c", details: { a: 1 } }, status: "failed", ...figures },
      { type: "turn.failed", error: { message: "m" } },
    ],
    [
      { type: "error", message: "m", code: "c" },
      { type: "error", message: "m" },
    ],
    [
      { type: "item.completed", item: { ...ran, outcome: "declined", error: "why" } },
      { type: "item.completed", item: ran },
    ],
    [
      { type: "item.completed", item: { ...failed, outcome: "unknown" } },
      { type: "item.completed", item: failed },
    ],
    [{ type: "heddle.retry", message: "m", attempt: 1, max_attempts: 2, delay_ms: 3 }, undefined],
  ];
  expect(shown.map(([line]) => onlyCodexFields(line))).toEqual(shown.map(([, expected]) => expected));
});
