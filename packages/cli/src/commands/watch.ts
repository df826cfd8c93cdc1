/** `heddle watch`: carries out tasks, and shows it. */
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import { CONFIG_OPTIONS } from "../app-server/engine.ts";
import type { Command, CommandContext } from "../command.ts";
import { fileHere } from "../tasks/read-tasks.ts";
import { tellFailure } from "../tasks/tell-failure.ts";
import { watchTasks } from "../tasks/watch-tasks.ts";

const OPTIONS: readonly OptionSpec[] = [
  { name: "once", help: "End when all tasks have ended; the exit code is their outcome" },
  { name: "queue", help: "Add nothing, also where this folder has a task file" },
  { name: "json", help: "JSON lines: every stored event of the tasks, and how it ended" },
  { name: "items", help: "Show what the agents say and do too" },
  { name: "verbose", short: "v", help: "Say first what tasks run with; secrets are masked" },
  ...CONFIG_OPTIONS,
];

export const watchCommand: Command = {
  usage: "watch [FILE|DIR] [--once]",
  about:
    "Carries out the tasks of this home and shows what happens to them. With FILE or DIR these tasks are added first, and\n" +
    "only they are shown; heddle-task.yaml or openloom.yaml of this folder is taken when nothing is named. Ctrl-C stops\n" +
    "the work and leaves the tasks to go on later.",
  options: OPTIONS,
  examples: [
    "heddle watch",
    "heddle watch heddle-task.yaml --once",
    "heddle watch tasks/ --once --json",
    "heddle watch --queue --once",
  ],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [named, ...more] = args.positionals;
  if (more.length > 0) throw usage("name one file or folder: heddle watch FILE");
  if (named !== undefined && args.has("queue")) throw usage(`--queue adds nothing; leave out it or ${named}`);
  const place = args.has("queue") ? undefined : (named ?? fileHere(context.cwd));
  try {
    return await watchTasks({ place, args, context, isOnce: args.has("once") });
  } catch (error) {
    return await tellFailure(error, args);
  }
}
