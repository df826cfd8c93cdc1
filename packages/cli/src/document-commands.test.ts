import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { checkDocument, type CommandTable } from "../test/document-commands.ts";
import { commands } from "./command-table.ts";

const TABLE: CommandTable = {
  exec: {
    usage: "exec [OPTIONS] [PROMPT]",
    subcommands: ["resume"],
    options: [
      { name: "sandbox", short: "s", value: "MODE", help: "" },
      { name: "json", aliases: ["experimental-json"], help: "" },
    ],
  },
  task: {
    usage: "task list\ntask pause|resume ID",
    subcommands: ["list", "pause", "resume"],
    options: [{ name: "state", value: "STATE", help: "" }],
  },
};

function findingsIn(text: string): readonly string[] {
  return checkDocument(`\n${text}\n`, { table: TABLE, scripts: ["check"] }).findings;
}

test.each([
  ["`heddle frobnicate`", "names heddle frobnicate, which is no command"],
  ["`heddle exec --gone x`", "names --gone, which is no option of heddle exec"],
  ["`heddle exec --state x`", "names --state, which is no option of heddle exec"],
  ["`heddle exec -x`", "names -x, which is no option of heddle exec"],
  ["`heddle task worktrees`", "names heddle task worktrees, which does not exist"],
  ["`heddle task --state x gone`", "names heddle task gone, which does not exist"],
  ["`heddle task list, gone`", undefined],
  ["`--gone`", "names --gone, which is no option of heddle"],
  ["`npm run gone`", "names npm run gone, which package.json does not have"],
  ['```sh\nx=1 npx heddle exec --gone "--fine"  # words\n```', "names --gone, which is no option of heddle exec"],
])("%s: %s", (text, finding) => {
  const [first] = findingsIn(text);
  expect(first?.replace(/^\d+: /, "")).toBe(finding);
});

test.each([
  '`heddle exec -s MODE --experimental-json "a --b"` and `heddle -s read-only exec x`',
  "`heddle task pause|resume ID`, `heddle task`, `heddle COMMAND --help`, `heddle --version`, `heddle …`",
  "`--state`, `--sandbox=x`, `-s`, `-wal`, `npm run check -- --fast`, `git diff --stat`",
  "`heddle exec resume ID`, `heddle exec whatever`",
  "```\nheddle gone --output\n```",
  "```sh\n# heddle gone\n```",
])("%s is left alone", (text) => {
  expect(findingsIn(text)).toEqual([]);
});

test("14: documents name only commands, options and scripts that exist", async () => {
  const root = path.join(import.meta.dirname, "../../..");
  const loaded = Object.entries(commands).map(async ([name, entry]) => [name, await entry.load()] as const);
  const table: CommandTable = Object.fromEntries(await Promise.all(loaded));
  const scripts = Object.keys(JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")).scripts);
  const documents = globSync(["*.md", "docs/**/*.md", "packages/*/README.md"], { cwd: root });
  const checked = documents.map((document) => {
    const { examined, findings } = checkDocument(readFileSync(path.join(root, document), "utf8"), { table, scripts });
    return { examined, findings: findings.map((finding) => `${document}:${finding}`) };
  });
  expect(checked.flatMap(({ findings }) => findings)).toEqual([]);
  expect(checked.reduce((sum, { examined }) => sum + examined, 0)).toBeGreaterThan(300);
});

test("14: every command, subcommand and option is on a page for users", async () => {
  const root = path.join(import.meta.dirname, "../../..");
  const pages = globSync(["README.md", "docs/use/*.md", "docs/build/*.md"], { cwd: root });
  const text = pages.map((page) => readFileSync(path.join(root, page), "utf8")).join("\n");
  const missing: string[] = [];
  for (const [name, entry] of Object.entries(commands)) {
    const { subcommands = [], options } = await entry.load();
    if (!text.includes(`heddle ${name}`)) missing.push(name);
    for (const one of subcommands)
      if (!new RegExp(`heddle ${name}[^\`\\n]*\\b${one}\\b|\`${one}\\b`).test(text)) missing.push(`${name} ${one}`);
    for (const { name: option, short = "-" } of options)
      if (!new RegExp(`--${option}(?![\\w-])|(?<![\\w-])-${short}\\b`).test(text)) missing.push(`${name} --${option}`);
  }
  expect(missing).toEqual([]);
});
