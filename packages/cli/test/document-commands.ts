/**
 * Documents promise nothing that is not there: every command, subcommand and option of `heddle` and every script of
 * `npm run` that a document names in backticks or in a fenced block of sh exists. An option alone in backticks is one of
 * Heddle's; those of other programs are written with the program.
 */

import type { OptionSpec } from "../src/args.ts";
import type { Command } from "../src/command.ts";

export type CommandTable = Readonly<Record<string, Pick<Command, "usage" | "options" | "subcommands">>>;

/** What one document names that does not exist, with its line, and how much was looked at. */
export function checkDocument(
  text: string,
  { table, scripts }: { readonly table: CommandTable; readonly scripts: readonly string[] },
): { readonly examined: number; readonly findings: readonly string[] } {
  const named = codeIn(text).flatMap(({ code, line }) =>
    [...heddleProblems(code, table), ...scriptProblems(code, scripts)].map((one) => ({ ...one, line })),
  );
  const findings = named.flatMap(({ text: problem, line }) => (problem === undefined ? [] : [`${line}: ${problem}`]));
  return { examined: named.length, findings };
}

interface Examined {
  /** undefined: it exists. */
  readonly text: string | undefined;
}

interface Code {
  readonly code: string;
  readonly line: number;
}

function codeIn(text: string): readonly Code[] {
  const found: Code[] = [];
  let fence: string | undefined;
  for (const [index, content] of text.split("\n").entries()) {
    const [, opening] = /^\s*```(\w*)/.exec(content) ?? [];
    const line = index + 1;
    if (opening !== undefined) fence = fence === undefined ? opening : undefined;
    else if (fence === "sh") found.push({ code: content.replace(/(^| +)# .*$/, ""), line });
    else if (fence === undefined)
      for (const [, code = ""] of content.matchAll(/`([^`]+)`/g)) found.push({ code, line });
  }
  return found;
}

function scriptProblems(code: string, scripts: readonly string[]): readonly Examined[] {
  return [...code.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = ""]) => ({
    text: scripts.includes(name) ? undefined : `names npm run ${name}, which package.json does not have`,
  }));
}

function heddleProblems(code: string, table: CommandTable): readonly Examined[] {
  if (/^(?:--[a-z][\w-]*|-[a-z])(?=[\s=]|$)/i.test(code)) {
    const all = Object.values(table).flatMap(({ options }) => options);
    return [optionProblem(code.split(/[\s=]/, 1)[0] ?? "", all, "heddle")];
  }
  const calls = [...code.matchAll(/(?:^|[\s"'(=])heddle ((?:"[^"]*"|'[^']*'|[^\n|;&>)"'])*)/g)];
  return calls.flatMap(([, words = ""]) => callProblems(wordsOf(words), table));
}

/** What is quoted is one word, and nothing that is looked at; brackets say that something may be left out. */
function wordsOf(text: string): readonly string[] {
  return text
    .replaceAll(/"[^"]*"|'[^']*'/g, "QUOTED")
    .split(/[\s[\]]+/)
    .filter((word) => word !== "");
}

function callProblems(words: readonly string[], table: CommandTable): readonly Examined[] {
  const at = words.findIndex((word) => Object.hasOwn(table, word));
  const [first = ""] = words;
  // `heddle COMMAND`, `heddle …`, `heddle --version`: no command is named.
  if (at !== 0 && !(first.startsWith("-") && at > 0))
    return /^[a-z][\w-]*$/.test(first) && first !== "help"
      ? [{ text: `names heddle ${first}, which is no command` }]
      : [];
  const name = words[at] ?? "";
  const { usage = "", options = [], subcommands = [] } = table[name] ?? {};
  const rest = words.slice(at + 1);
  const problems: Examined[] = [{ text: undefined }];
  let subcommand: string | undefined;
  for (const [index, word] of rest.entries()) {
    if (/^--?[a-z]/i.test(word)) problems.push(optionProblem(word.split("=", 1)[0] ?? "", options, `heddle ${name}`));
    else if (subcommand === undefined && !takesValue(rest[index - 1], options)) subcommand = word;
  }
  if (!takesOnly(subcommands, usage)) return problems;
  const named = (subcommand?.split(/[,|/]/) ?? []).filter((word) => /^[a-z][a-z-]*$/.test(word));
  for (const word of named)
    problems.push({
      text: subcommands.includes(word) ? undefined : `names heddle ${name} ${word}, which does not exist`,
    });
  return problems;
}

/** Others, such as exec, also take something else in its place. */
function takesOnly(subcommands: readonly string[], usage: string): boolean {
  const firsts = usage.split("\n").flatMap((form) => form.split(" ")[1]?.split("|") ?? [""]);
  return subcommands.length > 0 && firsts.every((word) => subcommands.includes(word));
}

function takesValue(word: string | undefined, options: readonly OptionSpec[]): boolean {
  return word !== undefined && find(word, options)?.value !== undefined;
}

function optionProblem(word: string, options: readonly OptionSpec[], whose: string): Examined {
  const isKnown = word === "--help" || word === "-h" || find(word, options) !== undefined;
  return { text: isKnown ? undefined : `names ${word}, which is no option of ${whose}` };
}

function find(word: string, options: readonly OptionSpec[]): OptionSpec | undefined {
  return options.find(({ name, aliases = [], short }) =>
    word.startsWith("--") ? [name, ...aliases].includes(word.slice(2)) : short === word[1] && word.startsWith("-"),
  );
}
