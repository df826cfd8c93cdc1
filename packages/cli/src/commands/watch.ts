/** `heddle watch`: carries out tasks, and shows it. */
import type { DoorPlan } from "@heddle/runtime/doors";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { DOOR_OPTIONS, doorChoices } from "../door-options.ts";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { say } from "../print/screen.ts";
import { fileHere } from "../tasks/read-tasks.ts";
import { printFailure } from "../tasks/on-task.ts";
import { watchTasks } from "../tasks/watch-tasks.ts";

const OPTIONS: readonly OptionSpec[] = [
  { name: "once", help: "End when all tasks have ended; the exit code is their outcome" },
  { name: "queue", help: "Run what is queued; do not add the task file of this folder" },
  { name: "json", help: "JSON lines: every stored event of the tasks, and how it ended" },
  { name: "items", help: "Show what the agents say and do too" },
  { name: "ui", help: "Serve clients meanwhile, as heddle serve does: HTTP, WebSocket, a socket" },
  { name: "accept-spec", help: "Take a task file as the agent of an earlier task left it" },
  { name: "verbose", short: "v", help: "First print the settings tasks run with; secrets are masked" },
  ...CONFIG_OPTIONS,
  ...DOOR_OPTIONS.map((option) => ({ ...option, of: "--ui" })),
];

export const watchCommand: Command = {
  usage: "watch [FILE|DIR] [--once] [--ui]",
  about:
    "Runs the tasks of this home and shows their progress. With FILE or DIR these tasks are added first, and\n" +
    "only they are shown; heddle-task.yaml or openloom.yaml of this folder is taken when nothing is named. Ctrl-C stops\n" +
    "the work and leaves the tasks to continue later.",
  options: OPTIONS,
  examples: [
    "heddle watch",
    "heddle watch heddle-task.yaml --once",
    "heddle watch tasks/ --once --json",
    "heddle watch --queue --once",
    "heddle watch heddle-task.yaml --ui",
    "heddle watch --ui --listen http://127.0.0.1:4617",
  ],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [named, ...more] = args.positionals;
  if (more.length > 0) throw usage("name one file or folder: heddle watch FILE");
  if (named !== undefined && args.has("queue")) throw usage(`--queue adds no task file; leave out --queue or ${named}`);
  const door = DOOR_OPTIONS.find(({ name }) => args.has(name));
  if (door !== undefined && !args.has("ui")) throw usage(`--${door.name} is for --ui; write heddle watch --ui`);
  const file = args.has("queue") ? undefined : (named ?? fileHere(context.cwd));
  try {
    const ui = args.has("ui") ? await planUi(args, context) : undefined;
    return await watchTasks({ file, args, context, isOnce: args.has("once"), ui });
  } catch (error) {
    return await printFailure(error, args);
  }
}

/** Loaded only with --ui. */
async function planUi(args: ParsedArgs, { cwd, env }: CommandContext): Promise<DoorPlan> {
  const { planDoors } = await import("@heddle/runtime/doors");
  const instead = "leave out --ui: heddle watch works beside it";
  return planDoors({ choices: doorChoices(args, cwd), cwd, env, what: "heddle watch --ui", instead, log: say });
}
