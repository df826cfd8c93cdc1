/** `heddle task`: work orders, from the first file to the last look. What carries them out is `heddle watch`, or `heddle serve`. */
import { didYouMean, EXIT } from "@heddle/protocol";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { foreignOption, usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { tellingFailures } from "../tasks/telling-failures.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput } from "../print/output.ts";
import { CHANGES, type Change } from "../tasks/changes.ts";

const VERBS = [
  "init",
  "plan",
  "lint",
  "add",
  "run",
  "list",
  "show",
  "log",
  "diff",
  "accept",
  "undo",
  "verify",
  "export",
  "collect",
  ...CHANGES,
] as const;
type Verb = (typeof VERBS)[number];

const OPTIONS: readonly OptionSpec[] = [
  { name: "json", help: "JSON lines: tasks and events as stored" },
  { name: "path", value: "FILE", of: "init", completes: "file", help: "Where to write it (default heddle-task.yaml)" },
  { name: "run", of: "lint", help: "Run the checks too, and name those that pass already" },
  { name: "state", value: "STATE", of: "list", isMultiple: true, help: "Only these states; several with commas" },
  { name: "label", value: "LABEL", of: "list", help: "Only tasks with this label" },
  { name: "text", value: "WORDS", of: "list", help: "Only tasks whose name contains this text" },
  { name: "cd", short: "C", value: "DIR", of: "list", completes: "folder", help: "Only tasks of this folder" },
  { name: "all", of: "list", help: "Archived ones too" },
  { name: "limit", value: "N", of: "list", help: "How many to list (default 50)" },
  { name: "after", value: "ID", of: "list", help: "Continue after this task of an earlier list" },
  { name: "follow", short: "f", of: "log", help: "Follow until it has ended" },
  {
    name: "more",
    value: "WHAT=N",
    of: "resume",
    isMultiple: true,
    help: "More budget: turns=5, time=30m, tokens=N, cost_usd=N",
  },
  { name: "input", value: "TEXT", of: "resume", help: "An answer for the agent; its next prompt begins with it" },
  { name: "reason", value: "TEXT", help: "Kept with a pause, cancel, retry, accept or complete" },
  { name: "fresh", of: "retry", help: "In a new thread; with a new copy of the workspace where it has none" },
  { name: "from-baseline", of: "retry", help: "First put the workspace back to how it was when the task began" },
  { name: "force", of: ["undo", "retry"], help: "Also put back what changed after the agent stopped" },
  { name: "stat", of: "diff", help: "Only which files, and how many lines" },
  {
    name: "bundle",
    value: "FILE",
    of: ["verify", "export"],
    completes: "file",
    help: "A file with all that judging again needs",
  },
  { name: "html", of: "export", help: "As one page for people, which a browser opens without a server" },
  {
    name: "output",
    short: "o",
    value: "FILE",
    of: "export",
    completes: "file",
    help: "With --html: write there, not to stdout",
  },
  { name: "accept-spec", of: ["add", "run"], help: "Take a task file as the agent of an earlier task left it" },
  {
    name: "action",
    value: "ACTION",
    of: "relieve",
    choices: ["eof", "kill-child", "interrupt", "retry"],
    help: "What to do about a stall; default kill-child",
  },
  { name: "dry-run", of: ["collect", "undo"], help: "Only print what would be done" },
  {
    name: "older-than",
    value: "TIME",
    of: "collect",
    help: "How long ago their tasks ended (default 1d for worktrees, 7d for what tasks were judged by)",
  },
  { name: "back", of: "archive", help: "Restore it from the archive" },
  { name: "items", of: "run", help: "Show what the agent says and does too" },
  { name: "verbose", short: "v", of: "run", help: "First print the settings it runs with; secrets are masked" },
  ...CONFIG_OPTIONS.map((option) => ({ ...option, of: "run" })),
];

export const taskCommand: Command = {
  usage:
    "task init [GOAL] [--path FILE]\ntask plan TEXT\ntask lint FILE|DIR [--run]\ntask add FILE|DIR|-\ntask run FILE\ntask list\ntask show ID\ntask log ID [--follow]\n" +
    "task diff ID [PATH...] [--stat]\ntask accept ID\ntask undo ID [--dry-run] [--force]\ntask retry ID [--from-baseline]\n" +
    "task verify ID | --bundle FILE\ntask export ID --bundle FILE\ntask export ID --html [-o FILE]\ntask collect [--dry-run]\n" +
    `task ${CHANGES.join("|")} ID...`,
  about:
    "Tasks whose completion is decided by checks. add puts them into the queue of this home, where heddle watch or a\n" +
    "running heddle serve finds them; run adds one and watches it to its end. ID is an id, a beginning of one, or a name.\n" +
    "diff shows what a task changed, undo puts its workspace back to how it was when the task began, accept says that what\n" +
    "was put to you is the work. verify judges again from what was kept: 0 the same, 1 another verdict, 3 evidence is missing.",
  subcommands: VERBS,
  options: OPTIONS,
  examples: [
    `heddle task init "fix the failing test"`,
    'heddle task plan "a page that says whether the server is well" > health.yaml',
    "heddle task lint heddle-task.yaml --run",
    "heddle task run heddle-task.yaml",
    "heddle task add tasks/",
    "heddle task list --state failed,paused",
    'heddle task show "fix the failing test"',
    "heddle task log 01a1 --follow",
    "heddle task resume 01a1 --more turns=5",
    'heddle task resume 01a1 --input "use port 8080"',
    "heddle task relieve 01a1 --action eof",
    "heddle task diff 01a1 src --stat",
    "heddle task accept 01a1",
    "heddle task undo 01a1 --dry-run",
    "heddle task retry 01a1 --from-baseline",
    "heddle task verify 01a1",
    "heddle task export 01a1 --bundle work.heddle.gz",
    "heddle task export 01a1 --html -o run.html",
    "heddle task verify --bundle work.heddle.gz",
    "heddle task archive 01a1 --back",
    "heddle task collect --dry-run",
  ],
  run: tellingFailures(runVerb),
};

async function runVerb(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [verbGiven, ...rest] = args.positionals;
  const verb = VERBS.find((known) => known === verbGiven);
  if (verb === undefined)
    throw usage(`write heddle task ${VERBS.join(", ")}${verbGiven === undefined ? "" : didYouMean(verbGiven, VERBS)}`);
  const foreign = foreignOption(OPTIONS, args, verb);
  if (foreign !== undefined) throw usage(`--${foreign.name} belongs to heddle task ${foreign.owners.join(" and ")}`);
  return isChange(verb) ? changeTasks(verb, rest, args, context) : runOther(verb, rest, args, context);
}

async function changeTasks(
  verb: Change,
  rest: readonly string[],
  args: ParsedArgs,
  context: CommandContext,
): Promise<number> {
  const [first, ...more] = rest;
  if (verb === "retry" && args.has("from-baseline")) {
    if (first === undefined || more.length > 0) throw usage("write heddle task retry ID --from-baseline");
    return (await import("../tasks/undo.ts")).undoTask(first, args, context, { isRetried: true });
  }
  return (await import("../tasks/change.ts")).changeTasks(verb, rest, args, context);
}

/** What a verb needs is loaded when it is used: a list needs nothing of a worker. */
async function runOther(
  verb: Exclude<Verb, Change>,
  rest: readonly string[],
  args: ParsedArgs,
  context: CommandContext,
): Promise<number> {
  if (verb === "init") return init(rest, args, context);
  if (verb === "plan") return (await import("../tasks/plan.ts")).planTask(rest, args, context);
  const [first, ...more] = rest;
  if (verb === "diff" && first !== undefined) return (await import("../tasks/diff.ts")).diffTask(rest, args, context);
  if (verb === "verify" && more.length === 0)
    return (await import("../tasks/verify.ts")).verifyTask(first, args, context);
  const takesNothing = verb === "list" || verb === "collect";
  if (more.length > 0 || (takesNothing && first !== undefined)) throw usage(`write heddle task ${FORMS[verb]}`);
  if (verb === "list") return (await import("../tasks/list.ts")).listTasks(args, context);
  if (verb === "collect") return (await import("../tasks/collect.ts")).collect(args, context);
  if (first === undefined) throw usage(`write heddle task ${FORMS[verb]}`);
  switch (verb) {
    case "lint":
      return (await import("../tasks/lint.ts")).lintTasks(first, args, context);
    case "add":
      return (await import("../tasks/add.ts")).addTasks(first, args, context);
    case "run": {
      const { watchTasks } = await import("../tasks/watch-tasks.ts");
      return watchTasks({ file: first, args, context, isOnce: true, isAlone: true });
    }
    case "show":
      return (await import("../tasks/show.ts")).showTask(first, args, context);
    case "log":
      return (await import("../tasks/show.ts")).logTask(first, args, context);
    case "accept":
      return (await import("../tasks/change.ts")).acceptTask(first, args, context);
    case "undo":
      return (await import("../tasks/undo.ts")).undoTask(first, args, context, { isRetried: false });
    case "export":
      return (await import("../tasks/verify.ts")).exportTask(first, args, context);
    case "diff":
    case "verify":
      throw usage(`write heddle task ${FORMS[verb]}`);
  }
}

function isChange(verb: Verb): verb is Change {
  return CHANGES.some((change) => change === verb);
}

const FORMS: Readonly<Record<Exclude<Verb, Change | "init" | "plan">, string>> = {
  lint: "lint FILE, or a folder",
  add: "add FILE, a folder, or - for standard input",
  run: "run FILE",
  list: "list; --text TEXT and --state STATE choose some",
  show: "show ID; heddle task list shows them",
  log: "log ID; heddle task list shows them",
  diff: "diff ID, then paths or globs to see only some",
  accept: "accept ID; heddle task list --state paused shows them",
  undo: "undo ID, with --dry-run to look first",
  verify: "verify ID, or verify --bundle FILE",
  export: "export ID --bundle FILE, or export ID --html -o FILE",
  collect: "collect, with --dry-run to look first",
};

async function init(rest: readonly string[], args: ParsedArgs, { cwd }: CommandContext): Promise<number> {
  const goal = rest.join(" ");
  const { initTask } = await import("../tasks/init.ts");
  const file = await initTask({ path: args.value("path"), goal }, cwd);
  const next = `heddle task lint ${file} --run`;
  const first = goal.trim() === "" ? "write its goal" : "look at its checks";
  const text = args.has("json") ? toLine({ file }) : `${file} is written; ${first}, then: ${next}\n`;
  await openOutput(process.stdout).write(text);
  return EXIT.ok;
}
