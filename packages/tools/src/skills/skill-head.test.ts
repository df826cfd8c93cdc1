import { expect, test } from "vitest";
import { parseSkillHead } from "./skill-head.ts";

const head = (...lines: string[]): string => ["---", ...lines, "---", "# Body"].join("\n");

test.each([
  ["plain", ["name: deploy", "description: Ships it: to production # soon"], "Ships it: to production"],
  ["double quotes", ["name: deploy", 'description: "Ships \\"it\\": now"'], 'Ships "it": now'],
  ["single quotes", ["name: 'deploy'", "description: 'It''s shipped'"], "It's shipped"],
  ["folded", ["description: >-", "  Ships it", "  safely", "name: deploy"], "Ships it safely"],
  ["a block", ["description: |", "  Ships it", "", "  safely", "name: deploy"], "Ships it safely"],
  ["continued on the next line", ["name: deploy", "description:", "  Ships", "  it"], "Ships it"],
  [
    "other keys around it",
    ["license: MIT", "metadata:", "  name: other", "name: deploy", "allowed-tools: a b", "description: x"],
    "x",
  ],
])("reads a head: %s", (_name, lines, description) => {
  expect(parseSkillHead(head(...lines))).toEqual({
    kind: "head",
    name: "deploy",
    description,
    bodyStart: ["---", ...lines, "---", ""].join("\n").length,
  });
});

test("reads a head with a byte order mark and Windows line ends", () => {
  const text = "\uFEFF---\r\nname: deploy\r\ndescription: x\r\n---\r\nbody";
  expect(parseSkillHead(text)).toMatchObject({ kind: "head", name: "deploy", description: "x" });
});

test.each([
  ["no head", "# Title", "begin with ---"],
  ["no end", "---\nname: a\ndescription: b\n", "no closing ---"],
  ["an end too far away", `---\n${"x: y\n".repeat(1000)}---\n`, "no closing ---"],
  ["no description", head("name: a"), "no description"],
  ["a name with a path", head("name: ../../etc", "description: x"), "its name"],
  ["a name with capitals", head("name: Deploy", "description: x"), "its name"],
  ["a name twice", head("name: a", "name: b", "description: x"), "given twice"],
  ["an anchor", head("name: &a deploy", "description: x"), "not plain text"],
  ["an alias, as of a bomb", head("a: &a [x,x]", "name: deploy", "description: *a"), "not plain text"],
  ["a tag", head("name: deploy", "description: !!js/function x"), "not plain text"],
  ["a collection", head("name: deploy", "description: {a: b}"), "not plain text"],
  ["broken quotes", head("name: deploy", 'description: "x'), "not plain text"],
])("refuses %s", (_name, text, reason) => {
  expect(parseSkillHead(text)).toEqual({ kind: "bad", reason: expect.stringContaining(reason) });
});

test("a long description is cut, and reading a hostile head takes no time", () => {
  const before = process.threadCpuUsage();
  const parsed = parseSkillHead(head("name: a", `description: ${"x ".repeat(100_000)}`));
  expect(parsed.kind === "head" && parsed.description.length).toBe(1024);
  parseSkillHead(head(`description: ${"#".repeat(100_000)}`, `name: ${" #".repeat(50_000)}`));
  parseSkillHead(`---\n${"'".repeat(100_000)}`);
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(1_000);
});
