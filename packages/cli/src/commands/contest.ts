/** `heddle contest`: agents against each other at tasks that checks decide. */
import { didYouMean } from "@heddle/protocol";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { foreignOption, usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { tellingFailures } from "../tasks/telling-failures.ts";

const VERBS = ["show", "run"] as const;

const OPTIONS: readonly OptionSpec[] = [
  { name: "json", help: "One JSON object: the whole record" },
  {
    name: "agents",
    value: "A,B",
    of: "run",
    help: "Who takes part: runners with commas, each with :MODEL where one is meant; those of the files when absent",
  },
  { name: "repeat", value: "N", of: "run", help: "How often each agent does each task (default 1)" },
  { name: "accept-spec", of: "run", help: "Take a task file as the agent of an earlier task left it" },
  ...CONFIG_OPTIONS.map((option) => ({ ...option, of: "run" })),
];

export const contestCommand: Command = {
  usage: "contest show ID|LABEL\ncontest run FILE|DIR... [--agents A,B] [--repeat N]",
  about:
    "A task with agents: in its file is a contest: each agent does it in a tree of its own, and only work that the checks verify\n" +
    "can be picked; heddle task run FILE runs it. show prints who was verified or why not, with cost, time and size of change.\n" +
    "run is a benchmark of agents on your own tasks: it changes nothing in your folders. It prints, for each agent, how often it\n" +
    "was verified with a 95 % interval, and its cost and time. Run again after a crash or Ctrl-C, the same command continues it;\n" +
    "once it has ended, the same command begins another one. show LABEL prints it again.",
  subcommands: VERBS,
  options: OPTIONS,
  examples: [
    "heddle contest show 01a1",
    "heddle contest show 01a1 --json",
    "heddle contest run tasks/ --agents codex,claude --repeat 3",
    "heddle contest run fix.yaml --agents embedded:gpt-5.5,embedded:gpt-5.5-mini --json",
    "heddle contest show bench-0123456789ab-1",
  ],
  run: tellingFailures(runVerb),
};

async function runVerb(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [verb, ...rest] = args.positionals;
  const foreign = foreignOption(OPTIONS, args, verb);
  if (foreign !== undefined) throw usage(`--${foreign.name} belongs to heddle contest ${foreign.owners.join(" and ")}`);
  const [first, ...more] = rest;
  if (verb === "show" && first !== undefined && more.length === 0)
    return (await import("../tasks/contest.ts")).showContest(first, args, context);
  if (verb === "run" && first !== undefined)
    return (await import("../tasks/contest.ts")).runContests(rest, args, context);
  const hint = verb === undefined ? "" : didYouMean(verb, VERBS);
  throw usage(`write heddle contest show ID, or heddle contest run FILE --agents codex,claude${hint}`);
}
