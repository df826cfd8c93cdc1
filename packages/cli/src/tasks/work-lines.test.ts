/** What a verdict rests on, as it is shown. */
import type { CheckResult } from "@heddle/protocol";
import { expect, test } from "vitest";
import { restsLine } from "./work-lines.ts";

const result: CheckResult = {
  name: "the check",
  kind: "command",
  outcome: "passed",
  message: "it ended with 0",
  startedAt: 0,
  durationMs: 0,
  restsOn: ["a.js"],
};

test("13: a verdict of a host that cannot observe reads says so, and no other does", () => {
  expect(restsLine({ ...result, areReadsKnown: false }, undefined)).toEqual([
    "         rests on a.js (all files: this host cannot observe what a check reads)",
  ]);
  expect(restsLine({ ...result, areReadsKnown: true }, undefined)).toEqual(["         rests on a.js"]);
});
