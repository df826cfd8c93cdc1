/**
 * `heddle acp`: the door for editors, over the Agent Client Protocol on standard input and output. The editor starts it and
 * ends it: with its input, its turns end, and what only waits for an answer waits on in the record.
 */
import path from "node:path";
import { EXIT } from "@heddle/protocol";
import { AppServer, LOCAL_OWNER, stdioChannel } from "@heddle/server";
import { acpDialect } from "@heddle/server/acp";
import { makeHome, readConfiguration } from "@heddle/runtime/config";
import { openServing } from "@heddle/runtime/serving";
import { configChoices } from "../config-options.ts";
import { callerIn } from "../exec/caller.ts";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { abandonSilentOutput } from "../print/output.ts";
import { say } from "../print/screen.ts";
import { reportUnstoredEnds, untilAborted } from "../until-end.ts";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { watchForStop } from "../stop.ts";

/** Each stands for a key of the configuration. */
const KEYS = { runner: "runner", model: "model", envelope: "envelope", ceiling: "ceiling" } as const;

const OPTIONS: readonly OptionSpec[] = [
  { name: "runner", value: "NAME", help: "What carries out the turns: embedded, codex, claude, … (heddle runners)" },
  { name: "model", short: "m", value: "MODEL", help: "Model of new sessions" },
  { name: "envelope", value: "NAME", help: "The mode of new sessions: explore, edit, test, … (heddle envelopes)" },
  { name: "ceiling", value: "NAME", help: "The widest envelope that any session may have" },
  {
    name: "cd",
    short: "C",
    value: "DIR",
    completes: "folder",
    help: "Start as if in this folder; sessions name their own",
  },
  ...CONFIG_OPTIONS,
];

export const acpCommand: Command = {
  usage: "acp [OPTIONS]",
  about:
    "Serves an editor over the Agent Client Protocol (version 1) on standard input and output: sessions, prompts, permissions,\n" +
    "modes. An editor starts it as an agent; sessions are threads, and modes are envelopes.",
  options: OPTIONS,
  examples: [
    "heddle acp",
    "heddle acp --envelope explore --ceiling edit",
    "heddle acp --runner claude",
    "heddle acp -m gpt-5.5 -c approval_policy=untrusted",
  ],
  run,
};

/** Turns have six seconds to end; then the process ends, whatever hangs. */
const STOP_MS = 9_500;

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const { env, version } = context;
  const [extra] = args.positionals;
  if (extra !== undefined) throw usage(`acp takes no arguments, only options; what is "${extra}"?`);
  const cwd = path.resolve(context.cwd, args.value("cd") ?? ".");
  using stop = watchForStop(undefined, STOP_MS);
  const choices = configChoices(args);
  const named = Object.entries(KEYS).flatMap(([option, key]) => {
    const value = args.value(option);
    return value === undefined ? [] : [`${key}=${JSON.stringify(value)}`];
  });
  const configuration = await readConfiguration(
    { ...choices, overrides: [...(choices.overrides ?? []), ...named] },
    env,
  );
  for (const warning of configuration.warnings) say(warning);
  const home = await makeHome(env);
  // Closed in the opposite order: the server ends its turns and tells its client, then the engine closes.
  await using ends = new AsyncDisposableStack();
  const serving = await openServing(ends, { configuration, home, env, log: say });
  const { heddle } = serving;
  const originator = callerIn(env);
  const { warnings: configWarnings } = configuration;
  const server = ends.use(new AppServer({ ...serving, home, cwd, version, originator, configWarnings, log: say }));
  const served = server.accept(stdioChannel(process.stdin, process.stdout), LOCAL_OWNER, acpDialect);
  await Promise.race([served, untilAborted(stop.signal)]);
  await ends.disposeAsync();
  await abandonSilentOutput(process.stdout);
  return reportUnstoredEnds(heddle, stop.exitCode ?? EXIT.ok);
}
