import { expect, test } from "vitest";
import { queryOf } from "./query.ts";

test("names narrow, everything else is words to find", () => {
  expect(queryOf("npm install type:task.*,tool.settled author:user:ada since:2026-11-16")).toEqual({
    text: "npm install",
    type: ["task.*", "tool.settled"],
    author: ["user:ada"],
    since: Date.parse("2026-11-16"),
  });
  expect(queryOf("  ")).toEqual({});
});
