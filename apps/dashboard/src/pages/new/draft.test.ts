import { expect, test } from "vitest";
import { parse } from "yaml";
import { asYaml, newDraft, specOf } from "./draft.ts";

test("the form says the same as the file that it shows", () => {
  const spec = specOf({
    ...newDraft(),
    name: "pin: the time",
    goal: "Stamp them in UTC.\nDo not change the tests.",
    workspace: "/home/ada/shop-api",
    checks: [
      { kind: "tests", text: "node --test" },
      { kind: "changed", text: "src/**" },
      { kind: "contains", text: "NOTES.md: yes" },
      { kind: "command", text: "" },
    ],
    turns: "6",
    tokens: "400,000",
    costUsd: "$1.5",
    apply: "on-verified",
  });
  expect(spec).toEqual({
    name: "pin: the time",
    goal: "Stamp them in UTC.\nDo not change the tests.",
    workspace: "/home/ada/shop-api",
    checks: [{ tests: "node --test" }, { changed: ["src/**"] }, { contains: { path: "NOTES.md", text: "yes" } }],
    apply: "on-verified",
    budget: { turns: 6, tokens: 400_000, cost_usd: 1.5 },
  });
  expect(parse(asYaml(spec))).toEqual(spec);
});

test("a draft at its defaults is only its goal", () => {
  expect(specOf({ ...newDraft(), goal: "yes" })).toEqual({ goal: "yes" });
  expect(parse(asYaml({ goal: "yes", name: "no" }))).toEqual({ goal: "yes", name: "no" });
});
