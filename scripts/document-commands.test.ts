import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkDocumentCommands, loadCommands, type CommandTable } from "./document-commands.ts";
import { plantTree } from "./planted-tree.ts";

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
  using tree = plantTree({ "README.md": `\n${text}\n`, "package.json": '{"scripts":{"check":"x"}}' });
  return checkDocumentCommands(tree.root, TABLE).findings.map(({ at, text: finding }) => `${at}: ${finding}`);
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
  expect(first?.replace(/^README\.md:\d+: /, "")).toBe(finding);
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

test("14: the documents of this tree name only commands, options and scripts that exist", async () => {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const { examined, findings } = checkDocumentCommands(root, await loadCommands());
  expect(findings).toEqual([]);
  expect(examined).toBeGreaterThan(300);
});
