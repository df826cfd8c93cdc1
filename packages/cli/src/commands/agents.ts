/** `heddle agents`: who works in this home, whether they are there, what they are called and whether messages wake them. */
import {
  findAgent,
  openHeddle,
  readAgent,
  readAgents,
  readMessages,
  type Heddle,
  type MessageRules,
} from "@heddle/agent";
import { createRedactor } from "@heddle/journal";
import { didYouMean, EXIT, HeddleError, OWNER, visibleLine, type Agent, type Message } from "@heddle/protocol";
import { heddleHome, readConfiguration, storeAddressOf } from "@heddle/runtime/config";
import { knownSecrets } from "@heddle/runtime/known-secrets";
import { openRecord } from "@heddle/runtime/record";
import { messageRules } from "@heddle/runtime/settings";
import { foreignOption, usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { configChoices } from "../config-options.ts";
import { toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";
import { openScreen } from "../print/screen.ts";
import { localTime } from "../print/style.ts";

const VERBS = ["list", "show", "name", "wake"] as const;
type Verb = (typeof VERBS)[number];

const FORMS: Readonly<Record<Verb, string>> = {
  list: "list",
  show: "show AGENT",
  name: "name THREAD NAME, or name THREAD --none",
  wake: "wake AGENT on|off|default",
};
/** null: as the configuration says. */
const WAKES: ReadonlyMap<string, boolean | null> = new Map([
  ["on", true],
  ["off", false],
  ["default", null],
]);
const DEFAULT_LIMIT = 50;
const SHOWN_MESSAGES = 20;

export const agentsCommand: Command = {
  usage: "agents [list] | show AGENT | name THREAD NAME | wake AGENT on|off|default",
  about:
    "Lists the agents of this home, newest activity first: name, thread, runner, envelope, whether each is idle, running,\n" +
    "waiting, paused or gone, and which process holds its turn. show adds its messages. name gives a thread a name by\n" +
    "which heddle tell and heddle ask reach it. wake says whether a message may start a turn there.",
  subcommands: VERBS,
  options: [
    { name: "json", help: "JSON lines: agents and messages as they are" },
    { name: "all", of: "list", help: "Archived ones too" },
    { name: "limit", value: "N", of: "list", help: `How many to list (default ${DEFAULT_LIMIT})` },
    { name: "none", of: "name", help: "Remove the name" },
  ],
  examples: [
    "heddle agents",
    "heddle agents show scout",
    "heddle agents name 01a1ddef scout",
    "heddle agents wake scout on",
  ],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const out = openScreen(process.stdout, { isRaw: args.has("json") });
  const [word = "list", ...given] = args.positionals;
  const verb = VERBS.find((known) => known === word);
  if (verb === undefined) throw usage(`write heddle agents ${VERBS.join(", ")}${didYouMean(word, VERBS)}`);
  const foreign = foreignOption(agentsCommand.options, args, verb);
  if (foreign !== undefined) throw usage(`--${foreign.name} belongs to heddle agents ${foreign.owners.join(" and ")}`);
  const [agent = "", value, ...more] = given;
  const wanted = { list: 0, show: 1, name: args.has("none") ? 1 : 2, wake: 2 }[verb];
  if (given.length !== wanted || more.length > 0) throw usage(`write heddle agents ${FORMS[verb]}`);
  const rules = await rulesOf(args, context);
  switch (verb) {
    case "list":
      return list(args, context, { out, rules });
    case "show":
      return show(agent, args, { context, out, rules });
    case "name":
      return change(agent, context, async (heddle, threadId) => {
        await (await heddle.as(OWNER).messages()).name({ threadId, name: value ?? null });
        await out.write(args.has("json") ? toLine({ threadId, name: value ?? null }) : named(threadId, value));
      });
    case "wake": {
      const wakes = WAKES.get(value ?? "");
      if (wakes === undefined) throw usage(`write heddle agents ${FORMS.wake}`);
      return change(agent, context, async (heddle, threadId) => {
        await (await heddle.as(OWNER).messages()).wake({ threadId, wakes });
        await out.write(args.has("json") ? toLine({ threadId, wakes }) : wakeText(threadId, wakes));
      });
    }
  }
}

function named(threadId: string, name: string | undefined): string {
  return name === undefined ? `${threadId} has no name now\n` : `${threadId} is called ${visibleLine(name)}\n`;
}

function wakeText(threadId: string, wakes: boolean | null): string {
  if (wakes === null) return `messages wake ${threadId} where messages.wake of config.toml says so\n`;
  return wakes ? `messages may start turns of ${threadId}\n` : `messages for ${threadId} are kept for its next turn\n`;
}

export async function rulesOf(args: ParsedArgs, { env }: CommandContext): Promise<MessageRules> {
  return messageRules((await readConfiguration(configChoices(args), env)).config);
}

interface Showing {
  readonly out: Output;
  readonly rules: MessageRules;
}

async function list(args: ParsedArgs, { env }: CommandContext, { out, rules }: Showing): Promise<number> {
  const limit = Number(args.value("limit") ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1) throw usage("--limit must be a whole number above 0");
  await using journal = await openRecord(env);
  const agents = journal === undefined ? [] : await readAgents(journal, { all: args.has("all"), limit }, rules);
  for (const agent of agents) await out.write(args.has("json") ? toLine(agent) : `${agentLine(agent)}\n`);
  if (agents.length === 0 && !args.has("json")) await out.write(`no agents yet; heddle exec "…" makes one\n`);
  return EXIT.ok;
}

async function show(
  wanted: string,
  args: ParsedArgs,
  { context, out, rules }: Showing & { readonly context: CommandContext },
): Promise<number> {
  await using journal = await openRecord(context.env);
  if (journal === undefined) throw noRecord(wanted, context);
  const row = await findAgent(journal, wanted);
  const agent = await readAgent(journal, row, rules);
  const messages = await readMessages(journal, row.id, SHOWN_MESSAGES);
  if (args.has("json")) {
    await out.write(toLine(agent));
    for (const message of messages) await out.write(toLine(message));
    return EXIT.ok;
  }
  const lines = [
    agentLine(agent),
    ...agentFacts(agent),
    ...messages.flatMap((message) => messageLines(message, row.id)),
  ];
  await out.write(`${lines.join("\n")}\n`);
  return EXIT.ok;
}

function agentLine({ threadId, name, readiness, runner, envelope, title, unread }: Agent): string {
  const facts = [name ?? "-", threadId, readiness, runner ?? "-", envelope?.id ?? "-"];
  const waits = unread === 0 ? "" : `  ${unread} unread`;
  return visibleLine(`${facts.join("  ")}${waits}  ${title ?? ""}`.trimEnd());
}

function agentFacts({ workspace, parent, waitsFor, turnId, presence, wakes }: Agent): readonly string[] {
  const { process: held, isAlive, lastSeenAt } = presence;
  const alive = isAlive === null ? "" : isAlive ? ", alive" : ", dead";
  const facts = [
    ["workspace", workspace],
    ["parent", parent],
    ["turn", turnId],
    ["waits for", waitsFor],
    ["process", held === null ? null : `${held.pid}${alive}`],
    ["last seen", localTime(lastSeenAt)],
    ["messages", wakes ? "may start a turn" : "are kept for the next turn"],
  ];
  return facts.flatMap(([label, value]) =>
    value === null ? [] : [`  ${String(label).padEnd(10)} ${visibleLine(String(value))}`],
  );
}

/** The role and the source are shown with every message, so that nobody takes a quote for an order. */
export function messageLines(message: Message, of: string): readonly string[] {
  const { messageId, kind, role, author, from, to, text, sentAt, outcome, answer, failure, givenIn } = message;
  const who = from === null ? author : (from.name ?? from.threadId);
  const way = to === of ? `from ${who}` : `to ${to}`;
  const state = outcome ?? (givenIn === null ? "waits" : kind === "ask" ? "delivered, not answered" : "delivered");
  const head = `  ${localTime(sentAt)}  ${kind}  ${role}  ${way}  ${state}  ${messageId}`;
  const said = text.split("\n").map((line) => `    > ${visibleLine(line)}`);
  const end = answer ?? failure?.message;
  const reply = end === undefined ? [] : end.split("\n").map((line) => `    < ${visibleLine(line)}`);
  return [visibleLine(head), ...said, ...reply];
}

async function change(
  wanted: string,
  context: CommandContext,
  act: (heddle: Heddle, threadId: string) => Promise<void>,
): Promise<number> {
  const { env } = context;
  // Only to see that there is something to change; nothing is made where nothing is.
  const journal = await openRecord(env);
  if (journal === undefined) throw noRecord(wanted, context);
  await journal[Symbol.asyncDispose]();
  const redactor = createRedactor(await knownSecrets(env));
  await using heddle = await openHeddle({
    home: heddleHome(env),
    store: await storeAddressOf(env),
    providers: [],
    env,
    redactor,
    isUnattended: true,
  });
  await act(heddle, (await findAgent(heddle.journal, wanted)).id);
  return EXIT.ok;
}

export function noRecord(wanted: string, { env }: CommandContext): HeddleError {
  return new HeddleError(
    "agent.not-found",
    `there is no agent ${visibleLine(wanted)}: ${heddleHome(env)} has no record`,
  );
}
