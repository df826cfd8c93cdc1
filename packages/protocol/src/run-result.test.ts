import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { RunFinished, runResultSchema } from "./run-result.ts";

const PUBLISHED = new URL("../schema/run-result.json", import.meta.url);

test("the published schema is the one results are made of (heddle schema result > packages/protocol/schema/run-result.json)", () => {
  expect(JSON.parse(readFileSync(PUBLISHED, "utf8"))).toEqual(JSON.parse(JSON.stringify(runResultSchema())));
});

test("the last line of a run names no other status than a result does", () => {
  const line = { type: "heddle.run.finished", exit_code: 0, run_id: "r", thread_id: null, retryable: false };
  for (const status of ["completed", "failed", "cancelled"]) {
    expect(RunFinished.parse({ ...line, status })).toEqual({ ...line, status });
  }
  expect(RunFinished.safeParse({ ...line, status: "interrupted" }).success).toBe(false);
});
