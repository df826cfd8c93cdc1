/** `heddle cluster`: the workers of a store, and what their owner has them do. */
import { drainWorker, fenceWorker, findWorker, listWorkers, type WorkerRow } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import { counted, didYouMean, EXIT, HeddleError, OWNER, visibleLine, type TaskRecord } from "@heddle/protocol";
import { openRecord } from "@heddle/runtime/record";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import { STORE_OPTION, withStore } from "../store-option.ts";
import type { Command, CommandContext } from "../command.ts";
import type { Output } from "../print/output.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import { zonedTime } from "../print/style.ts";

const VERBS = ["status", "drain", "fence"] as const;
/** Of the queue; who needs more to see has more to fix. */
const MAX_UNMATCHED = 100;

const OPTIONS: readonly OptionSpec[] = [
  { name: "json", help: "One JSON object per line" },
  STORE_OPTION,
  { name: "reason", of: ["drain", "fence"], value: "TEXT", help: "Why; it is stored, and the worker says it" },
];

export const clusterCommand: Command = {
  usage: "cluster status\ncluster drain WORKER [--reason TEXT]\ncluster fence WORKER [--reason TEXT]",
  about:
    "Shows the workers of this store and what they hold. drain: a worker takes nothing new, and leaves when its tasks have\n" +
    "ended. fence: it can record nothing more from this moment on, whether it can be reached or not; it stops, and others\n" +
    "take its tasks. Workers that do not renew their leases are fenced by the others.",
  subcommands: VERBS,
  options: OPTIONS,
  examples: [
    "heddle cluster status",
    "heddle cluster status --json",
    "heddle cluster drain builder-1",
    'heddle cluster fence builder-1 --reason "its disk fails"',
  ],
  run,
};

interface Printing {
  readonly out: Output;
  readonly isJson: boolean;
}

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [verb, word, ...more] = args.positionals;
  const isJson = args.has("json");
  const printing = { out: openScreen(process.stdout, { isRaw: isJson }), isJson };
  await using journal = await openRecord(withStore(args, env));
  if (verb === "status" && word === undefined) return await status(journal, printing);
  if ((verb === "drain" || verb === "fence") && word !== undefined && more.length === 0)
    return await act(journal, { verb, word, reason: args.value("reason") }, printing);
  const hint = verb === undefined ? "" : didYouMean(verb, VERBS);
  throw usage(`write heddle cluster status, drain WORKER or fence WORKER${hint}`);
}

async function status(journal: Journal | undefined, { out, isJson }: Printing): Promise<number> {
  const workers = journal === undefined ? [] : await listWorkers(journal);
  const unmatched = journal === undefined ? [] : await unmatchedTasks(journal, workers);
  for (const worker of workers) {
    if (isJson)
      await out.write(toLine({ kind: "worker", ...worker, tasks: [...worker.tasks], turns: [...worker.turns] }));
    else await out.write(`${workerLines(worker)}\n`);
  }
  for (const { id, spec } of unmatched) {
    const needs = spec.needs ?? [];
    if (isJson) await out.write(toLine({ kind: "unmatched", taskId: id, name: spec.name, needs }));
    else await out.write(visibleLine(`${id} ${spec.name} needs ${needs.join(", ")}: no worker has that`) + "\n");
  }
  if (workers.length === 0 && !isJson)
    await out.write("no worker has joined this store; start one with: heddle worker\n");
  return EXIT.ok;
}

function workerLines({
  id,
  name,
  role,
  state,
  labels,
  concurrency,
  version,
  joinedAt,
  tasks,
  turns,
}: WorkerRow): string {
  const has = labels.length === 0 ? "" : `, has ${labels.join(", ")}`;
  const head = `${name}  ${state}  ${role}, ${counted(tasks.length, "task")} of ${concurrency}${has}`;
  const rest = `  ${id}, since ${zonedTime(joinedAt)}, Heddle ${version}, ${counted(turns.length, "turn")}`;
  return [head, rest, ...tasks.map((task) => `  ${task}`)].map(visibleLine).join("\n");
}

/** Tasks that wait for a worker that nobody has started. */
async function unmatchedTasks(journal: Journal, workers: readonly WorkerRow[]): Promise<readonly TaskRecord[]> {
  const waiting = await journal.tasks.page({ states: ["pending", "waiting"], limit: MAX_UNMATCHED });
  const living = workers.filter(({ state, role }) => state === "ready" && role !== "server");
  return waiting.filter(
    ({ spec: { needs } }) =>
      needs !== undefined && !living.some(({ labels }) => needs.every((need) => labels.includes(need))),
  );
}

interface Act {
  readonly verb: "drain" | "fence";
  readonly word: string;
  readonly reason: string | undefined;
}

async function act(
  journal: Journal | undefined,
  { verb, word, reason }: Act,
  { out, isJson }: Printing,
): Promise<number> {
  if (journal === undefined) throw new HeddleError("worker.not-found", "this home has no record, so no worker either");
  const { id, name } = await findWorker(journal, word);
  const [change, done, already] =
    verb === "drain"
      ? ([drainWorker, "takes nothing new, and leaves when its tasks have ended", "drains already"] as const)
      : ([fenceWorker, "is fenced: it records nothing more, and others take its tasks", "is gone already"] as const);
  const isDone = await change(journal, id, { author: OWNER, reason: reason ?? `by heddle cluster ${verb}` });
  if (isJson) await out.write(toLine({ worker: id, name, verb, isDone }));
  else await out.write(visibleLine(`${name} ${isDone ? done : already}`) + "\n");
  return EXIT.ok;
}
