/**
 * `heddle worker`: a process without doors that takes tasks of a store it shares with others. It leaves when it is told
 * to drain, by a signal or by `heddle cluster drain`, and at once when it is fenced.
 */
import { hostname } from "node:os";
import { EXIT } from "@heddle/protocol";
import { WorkerLabel } from "@heddle/protocol/tasks";
import { makeHome } from "@heddle/runtime/config";
import { logFacts } from "@heddle/runtime/telemetry";
import { openServing } from "@heddle/runtime/serving";
import { concurrencyOf, openWorker } from "@heddle/runtime/work";
import { readConfigOf } from "../config-options.ts";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { LOG_OPTIONS, openLog } from "../print/log.ts";
import { GRACE_OPTION, graceMsOf, untilToLeave } from "../leaving.ts";
import { reportUnstoredEnds } from "../until-end.ts";
import { usage, wholeNumber, type OptionSpec, type ParsedArgs } from "../args.ts";
import { STORE_OPTION, withStore } from "../store-option.ts";
import type { Command, CommandContext } from "../command.ts";
import { watchForStop } from "../stop.ts";

/** Tasks are given back within this, whatever hangs. */
const STOP_MS = 9_500;
const MAX_CONCURRENCY = 1_000;

const OPTIONS: readonly OptionSpec[] = [
  { name: "name", value: "NAME", help: "What others call it; default: the host and the process" },
  { name: "label", value: "LABEL", isMultiple: true, help: "What it has that a task may need, such as gpu" },
  { name: "concurrency", value: "N", help: "Tasks at a time; default: [tasks] concurrency of config.toml" },
  GRACE_OPTION,
  ...LOG_OPTIONS,
  STORE_OPTION,
  ...CONFIG_OPTIONS,
];

export const workerCommand: Command = {
  usage: "worker [--name NAME] [--label LABEL]... [--concurrency N]",
  about:
    "Takes tasks of a store that several processes share, and runs them here. It has no doors, and looks after no inbox and\n" +
    "no notifications. SIGTERM drains it: it takes nothing new, and what has not ended after --grace is given back.",
  options: OPTIONS,
  examples: [
    "heddle worker",
    "heddle worker --label gpu --label arm64",
    "heddle worker --name builder-1 --concurrency 8",
    "heddle cluster status",
  ],
  run,
};

async function run(args: ParsedArgs, { env: given, version }: CommandContext): Promise<number> {
  const env = withStore(args, given);
  const [extra] = args.positionals;
  if (extra !== undefined) throw usage(`worker takes no arguments, only options; what is "${extra}"?`);
  const log = openLog(args);
  const graceMs = graceMsOf(args);
  using stop = watchForStop(undefined, graceMs + STOP_MS);
  const configuration = await readConfigOf(args, env);
  const concurrency =
    wholeNumber(args, "concurrency", { max: MAX_CONCURRENCY, min: 1 }) ?? concurrencyOf(configuration.config);
  const name = args.value("name") ?? `${hostname()}-${process.pid}`;
  const member = { name, role: "worker", labels: labelsOf(args), concurrency, version } as const;
  const home = await makeHome(env);
  await using ends = new AsyncDisposableStack();
  const serving = await openServing(ends, { configuration, home, env, member, log: log.line });
  log.use(serving.heddle.journal.redactor);
  if (log.write !== undefined) await logFacts(ends, { journal: serving.heddle.journal, write: log.write });
  const { heddle } = serving;
  const work = {
    ...serving,
    home,
    config: configuration.config,
    env,
    log: log.line,
    role: "worker",
    concurrency,
  } as const;
  const { harness } = await openWorker(ends, work);
  const has = member.labels.length === 0 ? "" : `, has ${member.labels.join(", ")}`;
  log.line(`${name} takes tasks, ${concurrency} at a time${has}`);
  await untilToLeave({ stop, graceMs, member: heddle.member, harness, log: log.line });
  await ends.disposeAsync();
  heddle.member?.fenced.throwIfAborted();
  return reportUnstoredEnds(heddle, EXIT.ok, log.line);
}

function labelsOf(args: ParsedArgs): readonly string[] {
  const labels = args.values("label");
  for (const label of labels) {
    if (!WorkerLabel.safeParse(label).success)
      throw usage(`--label "${label}" must be lower-case letters, digits, ., _ or -, such as --label gpu`);
  }
  return [...new Set(labels)];
}
