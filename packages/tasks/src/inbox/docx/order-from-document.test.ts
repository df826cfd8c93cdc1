import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { docx, paragraph, row, table } from "../../../test/word-document.ts";
import { orderFromDocument } from "./order-from-document.ts";
import { writeDocument } from "./write-document.ts";

const lines = (...texts: readonly string[]): string => texts.map(paragraph).join("");
const read = (...rows: readonly string[]): unknown => parse(orderFromDocument("order.docx", docx(table(...rows))));

describe("78: what the cells of an order say", () => {
  test("keys are known whatever a word processor made of their letters; an unknown one stays as it is", () => {
    expect(
      read(row("Goal:", "x"), row("Session ID", "s"), row("Depends on", "a"), row("CWD", "/w"), row("Foo Bar", "y")),
    ).toEqual({ goal: "x", session_id: "s", depends_on: ["a"], cwd: "/w", "Foo Bar": "y" });
  });

  test("texts stand as they are, whatever they look like", () => {
    expect(
      read(row("goal", lines("- fix: “this”", "  # and that")), row("name", "no: 7"), row("workspace", "/a #b")),
    ).toEqual({
      goal: "- fix: “this”\n  # and that",
      name: "no: 7",
      workspace: "/a #b",
    });
  });

  test("a list has an entry on each line, or is YAML", () => {
    expect(
      read(
        row("acceptance", lines("[ ] it works: always", "  it’s fast  ", "")),
        row("labels", "[a, b]"),
        row("steps", lines("- title: one", "  acceptance: [x]", "- two")),
        row("protect", "docs/**"),
      ),
    ).toEqual({
      acceptance: ["it works: always", "it’s fast"],
      labels: ["a", "b"],
      steps: [{ title: "one", acceptance: ["x"] }, "two"],
      protect: ["docs/**"],
    });
  });

  test("checks have one on each line, or are YAML", () => {
    expect(read(row("checks", lines("npm run lint", "tests: npm test", "command: “grep -q ‘a b’ x”")))).toEqual({
      checks: ["npm run lint", { tests: "npm test" }, { command: "grep -q 'a b' x" }],
    });
    expect(read(row("checks", lines("- kind: file-exists", "  path:\u00a0README.md")))).toEqual({
      checks: [{ kind: "file-exists", path: "README.md" }],
    });
  });

  test("all else is what would stand behind the key in a YAML file", () => {
    expect(
      read(
        row("abort", "True"),
        row("priority", "3"),
        row("budget", lines("turns: 2", "time: 1h")),
        row("schedule", "*/5 * * * *"),
        row("max_tokens", "1000"),
      ),
    ).toEqual({
      abort: true,
      priority: 3,
      budget: { turns: 2, time: "1h" },
      schedule: "*/5 * * * *",
      max_tokens: 1000,
    });
  });

  test("headings and empty cells say nothing, and every row keeps its number", () => {
    const order = docx(table(row("Field", "Value"), row("name", ""), row("", ""), row("goal", "x")));
    expect(orderFromDocument("order.docx", order)).toBe('\n\n\n"goal": "x"');
  });

  test("what is wrong in a cell is told with its row, its key, and its line in the cell", () => {
    const wrong = docx(table(row("goal", "x"), row("checks", lines("- tests: npm test", "- *alias"))));
    expect(() => orderFromDocument("order.docx", wrong)).toThrow(
      "order.docx (row 2, checks):2:3: aliases (*name) are not read",
    );
    expect(() => read(row("budget", lines("turns: 1", "---", "turns: 2")))).toThrow("this is more than one value");
  });

  test("an order that was written here says what was written", () => {
    const facts = {
      goal: "Fix it.\n\n  npm test",
      workspace: "/w",
      checks: [{ tests: "npm test" }],
      abort: false,
      labels: ["a"],
    };
    expect(parse(orderFromDocument("order.docx", writeDocument(facts)))).toEqual(facts);
  });
});
