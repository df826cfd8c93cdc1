/** `heddle notify`: the sinks of notifications, a test of one, and what could not be delivered. */
import type { Journal, NotificationRow } from "@heddle/journal";
import { didYouMean, EXIT, HeddleError, OWNER, visibleLine } from "@heddle/protocol";
import { NOTIFICATION_NAMES, redeliver, testSink, type Sink } from "@heddle/tasks";
import { openRecord } from "@heddle/runtime/record";
import { notifyingOf } from "@heddle/runtime/work";
import { readConfigOf } from "../config-options.ts";
import { CONFIG_OPTIONS } from "./exec-options.ts";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";
import type { Output } from "../print/output.ts";
import { zonedTime } from "../print/style.ts";

const VERBS = ["list", "test", "dead", "redeliver"] as const;
/** One screen or two; the rest is reached with --after. */
const PAGE = 50;

const OPTIONS: readonly OptionSpec[] = [
  { name: "json", help: "One JSON object per line" },
  { name: "sink", of: "dead", value: "NAME", help: "Only those of one sink" },
  { name: "after", of: "dead", value: "ID", help: "Continue after this one" },
  { name: "all", of: "redeliver", help: "Every dead one, oldest first" },
  ...CONFIG_OPTIONS,
];

export const notifyCommand: Command = {
  usage: "notify list\nnotify test SINK\nnotify dead [--sink NAME]\nnotify redeliver ID...",
  about:
    "Shows the sinks of [notify.NAME] in config.toml, sends one of them a test, lists what could not be delivered and puts\n" +
    "it back into its queue. heddle serve and heddle watch deliver.",
  subcommands: VERBS,
  options: OPTIONS,
  examples: [
    "heddle notify list",
    "heddle notify test team",
    "heddle notify dead --sink team",
    "heddle notify redeliver ntf_000000000042-1a2b3c4d",
    "heddle notify redeliver --all",
  ],
  run,
};

async function run(args: ParsedArgs, { env }: CommandContext): Promise<number> {
  const [verb, ...positionals] = args.positionals;
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const isJson = args.has("json");
  if (verb === "list" && positionals.length === 0) return list(await sinksOf(args, env), env, { out, isJson });
  const [first, ...more] = positionals;
  if (verb === "test" && first !== undefined && more.length === 0) {
    return test(chosen(await sinksOf(args, env), first), { out, isJson });
  }
  if (verb === "dead" && first === undefined) return dead(args, env, { out, isJson });
  if (verb === "redeliver" && args.has("all") === (first === undefined))
    return putBack(positionals, env, { out, isJson });
  const hint = verb === undefined ? "" : didYouMean(verb, VERBS);
  throw usage(`write heddle notify list, test SINK, dead, redeliver ID or redeliver --all${hint}`);
}

async function sinksOf(args: ParsedArgs, env: NodeJS.ProcessEnv): Promise<readonly Sink[]> {
  const { config } = await readConfigOf(args, env);
  return notifyingOf(config, env).sinks;
}

interface Printing {
  readonly out: Output;
  readonly isJson: boolean;
}

async function list(sinks: readonly Sink[], env: NodeJS.ProcessEnv, { out, isJson }: Printing): Promise<number> {
  await using journal = await openRecord(env);
  const counts = (await journal?.notifications.counts()) ?? [];
  const countOf = (sink: string, state: NotificationRow["state"]): number =>
    counts.find((row) => row.sink === sink && row.state === state)?.count ?? 0;
  const configured = new Set(sinks.map(({ name }) => name));
  const gone = [...new Set(counts.map(({ sink }) => sink))].filter((name) => !configured.has(name));
  const rows = [
    ...sinks.map(({ name, kind, target, events }) => ({ name, kind, target, events: [...events] })),
    ...gone.map((name) => ({ name, kind: "", target: "no longer configured", events: [] as string[] })),
  ];
  for (const row of rows) {
    const numbers = {
      queued: countOf(row.name, "queued"),
      delivered: countOf(row.name, "delivered"),
      dead: countOf(row.name, "dead"),
    };
    if (isJson) {
      await out.write(toLine({ ...row, ...numbers }));
      continue;
    }
    const events = row.events.length === NOTIFICATION_NAMES.length ? "*" : row.events.join(" ");
    await out.write(
      `${visibleLine(`${row.name}  ${row.kind}  ${row.target}`)}\n` +
        `  ${events}\n  ${numbers.delivered} delivered, ${numbers.queued} queued, ${numbers.dead} dead\n`,
    );
  }
  if (rows.length === 0 && !isJson) {
    await out.write(`no notification sink is configured; add one to config.toml:\n\n[notify.me]\ntype = "desktop"\n`);
  }
  return EXIT.ok;
}

function chosen(sinks: readonly Sink[], name: string): Sink {
  const sink = sinks.find((one) => one.name === name);
  if (sink !== undefined) return sink;
  const names = sinks.map((one) => one.name);
  const known = names.length === 0 ? "; none is configured" : `; there are ${names.join(", ")}`;
  throw new HeddleError("usage.invalid", `there is no sink ${visibleLine(name)}${didYouMean(name, names) || known}`);
}

async function test(sink: Sink, { out, isJson }: Printing): Promise<number> {
  const result = await testSink(sink);
  const isDelivered = result.kind === "delivered";
  if (isJson) await out.write(toLine({ sink: sink.name, target: sink.target, ...result }));
  else
    await out.write(
      visibleLine(`${sink.name}: ${isDelivered ? "delivered" : "not delivered"}, ${result.message}`) + "\n",
    );
  return isDelivered ? EXIT.ok : EXIT.infrastructure;
}

async function dead(args: ParsedArgs, env: NodeJS.ProcessEnv, { out, isJson }: Printing): Promise<number> {
  await using journal = await openRecord(env);
  const sink = args.value("sink");
  const after = args.value("after");
  const rows =
    (await journal?.notifications.page({
      state: "dead",
      limit: PAGE,
      ...(sink === undefined ? {} : { sink }),
      ...(after === undefined ? {} : { after }),
    })) ?? [];
  for (const row of rows) {
    const { id, event, tries, message, taskId, queuedAt, payload } = row;
    if (isJson) await out.write(toLine({ id, sink: row.sink, event, taskId, tries, message, queuedAt, payload }));
    else {
      const at = zonedTime(queuedAt);
      await out.write(visibleLine(`${id}  ${row.sink}  ${event}  ${taskId ?? ""}  ${at}  ${message ?? ""}`) + "\n");
    }
  }
  const last = rows.at(-1);
  if (rows.length === PAGE && last !== undefined && !isJson)
    await out.write(`more: heddle notify dead --after ${last.id}\n`);
  return EXIT.ok;
}

async function putBack(ids: readonly string[], env: NodeJS.ProcessEnv, { out, isJson }: Printing): Promise<number> {
  await using journal = await openRecord(env);
  const wanted = ids.length > 0 || journal === undefined ? ids : await allDead(journal);
  for (const id of wanted) {
    if (journal === undefined) throw new HeddleError("usage.invalid", `there is no notification ${visibleLine(id)}`);
    const row = await redeliver(journal, { id, by: OWNER });
    if (isJson) await out.write(toLine({ id, sink: row.sink, event: row.event, state: row.state }));
    else await out.write(visibleLine(`${id} is queued for ${row.sink} again`) + "\n");
  }
  if (wanted.length === 0 && !isJson) await out.write("no dead notifications\n");
  return EXIT.ok;
}

/** Oldest first, so that they arrive in order. */
async function allDead(journal: Journal): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: string | undefined; ; after = ids.at(-1)) {
    const page = await journal.notifications.page({
      state: "dead",
      limit: PAGE,
      ...(after === undefined ? {} : { after }),
    });
    ids.push(...page.map(({ id }) => id));
    if (page.length < PAGE) return ids.toReversed();
  }
}
