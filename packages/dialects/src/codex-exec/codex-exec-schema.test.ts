import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CodexExecLine, codexExecSchema } from "./codex-exec-schema.ts";

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
