/** `heddle task`: work orders, from the first file to the last look. What carries them out is `heddle watch`, or `heddle serve`. */
import { didYouMean, EXIT } from "@heddle/protocol";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import { CONFIG_OPTIONS } from "../app-server/engine.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";
import { addTasks } from "../tasks/add.ts";
import { CHANGES, changeTasks, type Change } from "../tasks/change.ts";
import { collect } from "../tasks/collect.ts";
import { initTask } from "../tasks/init.ts";
import { lintTasks } from "../tasks/lint.ts";
import { listTasks } from "../tasks/list.ts";
import { logTask, showTask } from "../tasks/show.ts";
import { planTask } from "../tasks/plan.ts";
import { tellFailure } from "../tasks/tell-failure.ts";
import { watchTasks } from "../tasks/watch-tasks.ts";

const VERBS = ["init", "plan", "lint", "add", "run", "list", "show", "log", "collect", ...CHANGES] as const;
type Verb = (typeof VERBS)[number];

const OPTIONS: readonly OptionSpec[] = [
  { name: "json", help: "JSON lines: tasks and events as stored" },
  { name: "path", value: "FILE", of: "init", completes: "file", help: "Where to write it (default heddle-task.yaml)" },
  { name: "run", of: "lint", help: "Run the checks too, and name those that pass already" },
  { name: "state", value: "STATE", of: "list", isMultiple: true, help: "Only these states; several with commas" },
  { name: "label", value: "LABEL", of: "list", help: "Only tasks with this label" },
  { name: "text", value: "WORDS", of: "list", help: "Only tasks with these words in their name" },
  { name: "cd", short: "C", value: "DIR", of: "list", completes: "folder", help: "Only tasks of this folder" },
  { name: "all", of: "list", help: "Archived ones too" },
  { name: "limit", value: "N", of: "list", help: "How many to list (default 50)" },
  { name: "after", value: "ID", of: "list", help: "Go on after this task of an earlier list" },
  { name: "follow", short: "f", of: "log", help: "Go on until it has ended" },
  {
    name: "more",
    value: "WHAT=N",
    of: "resume",
    isMultiple: true,
    help: "More budget: turns=5, time=30m, tokens=N, cost_usd=N",
  },
  { name: "reason", value: "TEXT", help: "Kept with a pause, cancel, retry or complete" },
  {
    name: "action",
    value: "ACTION",
    of: "relieve",
    choices: ["eof", "kill-child", "interrupt", "retry"],
    help: "What to do about a stall; kill-child unless said",
  },
  { name: "dry-run", of: "collect", help: "Only say which worktrees would go" },
  { name: "older-than", value: "TIME", of: "collect", help: "How long ago their tasks ended (default 1d)" },
  { name: "back", of: "archive", help: "Take it back from the archive" },
  { name: "items", of: "run", help: "Show what the agent says and does too" },
  { name: "verbose", short: "v", of: "run", help: "Say first what it runs with; secrets are masked" },
  ...CONFIG_OPTIONS.map((option) => ({ ...option, of: "run" })),
];

export const taskCommand: Command = {
  usage:
    "task init [--path FILE]\ntask plan WORDS\ntask lint FILE|DIR [--run]\ntask add FILE|DIR|-\ntask run FILE\ntask list\ntask show ID\ntask log ID [--follow]\ntask collect [--dry-run]\n" +
    `task ${CHANGES.join("|")} ID...`,
  about:
    "Work orders whose completion is decided by checks. add puts them into the queue of this home, where heddle watch or a\n" +
    "running heddle serve finds them; run adds one and watches it to its end. ID is an id, a beginning of one, or a name.",
  subcommands: VERBS,
  options: OPTIONS,
  examples: [
    "heddle task init",
    'heddle task plan "a page that says whether the server is well" > health.yaml',
    "heddle task lint heddle-task.yaml --run",
    "heddle task run heddle-task.yaml",
    "heddle task add tasks/",
    "heddle task list --state failed,paused",
    'heddle task show "describe the project"',
    "heddle task log 01a1 --follow",
    "heddle task resume 01a1 --more turns=5",
    "heddle task relieve 01a1 --action eof",
    "heddle task archive 01a1 --back",
    "heddle task collect --dry-run",
  ],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  try {
    return await runVerb(args, context);
  } catch (error) {
    return await tellFailure(error, args);
  }
}

async function runVerb(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [word, ...words] = args.positionals;
  const verb = VERBS.find((known) => known === word);
  if (verb === undefined)
    throw usage(`write heddle task ${VERBS.join(", ")}${word === undefined ? "" : didYouMean(word, VERBS)}`);
  for (const { name, of } of OPTIONS) {
    if (of !== undefined && of !== verb && args.has(name)) throw usage(`--${name} belongs to heddle task ${of}`);
  }
  if (isChange(verb)) return changeTasks(verb, words, args, context);
  if (verb === "plan") return planTask(words, args, context);
  const [first, ...more] = words;
  const isWordless = verb === "init" || verb === "list" || verb === "collect";
  if (more.length > 0 || (isWordless && first !== undefined)) throw usage(`write heddle task ${FORMS[verb]}`);
  if (verb === "init") return init(args, context);
  if (verb === "list") return listTasks(args, context);
  if (verb === "collect") return collect(args, context);
  if (first === undefined) throw usage(`write heddle task ${FORMS[verb]}`);
  switch (verb) {
    case "lint":
      return lintTasks(first, args, context);
    case "add":
      return addTasks(first, args, context);
    case "run":
      return watchTasks({ place: first, args, context, isOnce: true });
    case "show":
      return showTask(first, args, context);
    case "log":
      return logTask(first, args, context);
  }
}

function isChange(verb: Verb): verb is Change {
  return CHANGES.some((change) => change === verb);
}

const FORMS: Readonly<Record<Exclude<Verb, Change | "plan">, string>> = {
  init: "init, with --path FILE for another name",
  lint: "lint FILE, or a folder",
  add: "add FILE, a folder, or - for standard input",
  run: "run FILE",
  list: "list; --text WORDS and --state STATE choose some",
  show: "show ID; heddle task list shows them",
  log: "log ID; heddle task list shows them",
  collect: "collect, with --dry-run to look first",
};

async function init(args: ParsedArgs, { cwd }: CommandContext): Promise<number> {
  const file = await initTask(args.value("path"), cwd);
  const next = `heddle task lint ${file} --run`;
  const text = args.has("json") ? toLine({ file }) : `${file} is written; change it, then: ${next}\n`;
  await openOutput(process.stdout).write(text);
  return EXIT.ok;
}
