import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { readFrontMatter } from "./front-matter.ts";
import { SpecError, type Problem } from "./positions.ts";
import { readSpecFiles } from "./read-files.ts";
import { readSpec } from "./read-spec.ts";

const folder = mkdtempSync(path.join(tmpdir(), "heddle-page-"));
afterAll(() => rmSync(folder, { recursive: true }));

function page(text: string, file = "task.md") {
  return readSpec({ file, text, folder }).specs[0] ?? expect.unreachable();
}

async function problemsOf(work: () => unknown): Promise<readonly Problem[]> {
  const error = await Promise.resolve()
    .then(work)
    .then(
      () => undefined,
      (reason: unknown) => reason,
    );
  if (error instanceof SpecError) return error.problems;
  throw new Error("nothing was refused", { cause: error });
}

const FRONT = "---\nworkspace: .\n---\n";

test("63: front matter has the keys, the page the words", () => {
  const spec = page(`---
workspace: .
labels: [ui]
budget: {turns: 3}
---

# Fix the login

The button does nothing.

## Steps

1. Find out why
   - the cause is written down
     in NOTES.md
2. [ ] Fix it

## Acceptance

- [ ] it works with the keyboard
* and with a mouse

## Checks

\`\`\`yaml
- tests: npm test
- contains: {path: NOTES.md, text: cause}
\`\`\`
`);
  expect(spec).toMatchObject({
    name: "Fix the login",
    workspace: folder,
    labels: ["ui"],
    budget: { turns: 3 },
    goal: "The button does nothing.",
    steps: [
      { title: "Find out why", acceptance: ["the cause is written down in NOTES.md"] },
      { title: "Fix it", acceptance: [] },
    ],
    acceptance: ["it works with the keyboard", "and with a mouse"],
    checks: [
      { kind: "tests", run: "npm test" },
      { kind: "contains", path: "NOTES.md", text: "cause" },
    ],
  });
});

test("66, D9: text inside the goal is never read as metadata", () => {
  const goal = "Explain these lines:\n\nabort: true\nagent: other\nworkspace: /etc\n# not a title\nsession: 7";
  const spec = page(`${FRONT}## Goal\n\n${goal}\n`);
  expect(spec).toMatchObject({ name: "task", goal, abort: false, workspace: folder });
  expect(spec.thread).toBeUndefined();
});

test("67: the goal keeps its indentation and its code, headings in code are code", () => {
  const goal = "    indented\n\n```md\n## Steps\n- not a step\n```\n\n## Notes\n\n\tdeep";
  expect(page(`${FRONT}${goal}\n`)).toMatchObject({ goal, steps: [] });
});

test("68, D10: a page without a heading for the goal is the goal", () => {
  expect(page(`${FRONT}Just do it.\n`).goal).toBe("Just do it.");
  expect(page(`${FRONT}# The name\nJust do it.\n`)).toMatchObject({ name: "The name", goal: "Just do it." });
});

test("headings that mean nothing after a list go on with the goal: nothing is lost", () => {
  const spec = page(`${FRONT}One.\n\n## Steps\n- a\n\n## Notes\nTwo.\n`);
  expect(spec).toMatchObject({ goal: "One.\n\n## Notes\nTwo.", steps: [{ title: "a", acceptance: [] }] });
});

test("18: mistakes on a page have the lines of the page", async () => {
  const text = `---\nworkspace: .\nlabel: x\n---\ngo\n\n## Checks\n\n- tests: npm test\n- file-exists: [a]\n`;
  expect((await problemsOf(() => page(text))).map(({ line, column, message }) => ({ line, column, message }))).toEqual([
    { line: 3, column: 1, message: 'unknown key "label"; did you mean "labels"?' },
    {
      line: 10,
      column: 3,
      message: "checks[1].file-exists must be a text (in quotes, if it looks like something else), not a list",
    },
  ]);
  expect((await problemsOf(() => page("---\nname: x\n")))[0]?.message).toContain("close it with a line of ---");
  expect((await problemsOf(() => page(`---\nworkspace: .\ngoal: a\n---\nb\n`)))[0]).toMatchObject({
    line: 5,
    key: "goal",
  });
});

test("front matter ends where its line says, with any line ends and a byte order mark", () => {
  expect(readFrontMatter("\uFEFF---\r\na: 1\r\n---\r\nbody\r\n---\r\n")).toEqual({
    front: { text: "a: 1\r\n", base: 6 },
    body: { text: "body\r\n---\r\n", base: 17 },
    isUnclosed: false,
  });
  expect(readFrontMatter("no\n---\na: 1\n---\n").front).toBeUndefined();
});

test("text without a name is read by its look", () => {
  const read = (text: string) =>
    readSpec({ file: "standard input", text, folder }, { defaults: { workspace: folder, name: "n" } }).specs[0];
  expect(read(`---\nlabels: x\n---\nDo it.\n`)).toMatchObject({ goal: "Do it.", labels: ["x"] });
  expect(read(`# Title\n\nDo it.\n`)).toMatchObject({ goal: "Do it.", name: "Title" });
  expect(read(`# a comment\ngoal: Do it.\n`)).toMatchObject({ goal: "Do it." });
});

test("9: a folder is all its tasks, dependencies first; a page without front matter is passed over", async () => {
  const many = path.join(folder, "many");
  mkdirSync(many);
  const write = (name: string, text: string): void => writeFileSync(path.join(many, name), text);
  write("a.yaml", "name: a\nworkspace: .\ngoal: g\ndepends_on: c\n");
  write("b.yml", "name: b\nworkspace: .\ngoal: g\n");
  write("c.md", `${FRONT}Do c.\n`);
  write("README.md", "# About\n");
  write(".hidden.yaml", "nonsense: 1\n");
  write("script.sh", "exit 1\n");
  const { found, warnings } = await readSpecFiles(many, { cwd: folder });
  expect(found.map(({ spec }) => spec.name)).toEqual(["c", "a", "b"]);
  expect(found[0]?.spec.workspace).toBe(many);
  expect(warnings).toContain("many/README.md: skipped, a page without front matter is not a task");

  write("c.md", `---\nworkspace: .\ndepends_on: a\n---\nDo c.\n`);
  expect((await problemsOf(() => readSpecFiles(many, { cwd: folder })))[0]?.message).toContain(
    "waits for itself: a → c",
  );
  write("b.yml", "nme: b\n");
  write("c.md", "---\nworkspace: .\nx: 1\n---\nDo c.\n");
  const files = (await problemsOf(() => readSpecFiles(many, { cwd: folder }))).map(({ file }) => file);
  expect(new Set(files)).toEqual(new Set(["many/b.yml", "many/c.md"]));
});

test("what is not there is told with what to do", async () => {
  await expect(readSpecFiles(path.join(folder, "nowhere.yaml"), { cwd: folder })).rejects.toMatchObject({
    code: "usage.invalid",
    message: expect.stringContaining("heddle task init"),
  });
});
