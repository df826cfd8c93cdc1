/** `heddle threads`: what is in the record, for people and, with --json, as it is stored; and what its owner may do with it. */
import { exportThread, findThread, openHeddle, type Heddle } from "@heddle/agent";
import { readTakeover } from "@heddle/agent/takeover";
import { createRedactor, type Journal, type ThreadRow } from "@heddle/journal";
import {
  counted,
  didYouMean,
  EXIT,
  HeddleError,
  isHeddleError,
  jsonProblem,
  OWNER,
  reasonOf,
  visibleLine,
} from "@heddle/protocol";
import { heddleHome, storeAddressOf } from "@heddle/runtime/config";
import { knownSecrets } from "@heddle/runtime/known-secrets";
import { allEvents, openRecord } from "@heddle/runtime/record";
import { openWorkspace } from "@heddle/runtime/settings";
import { foreignOption, usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { eventLines } from "../print/events.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen, say } from "../print/screen.ts";
import { byHand } from "../print/takeover.ts";
import type { Output } from "../print/output.ts";
import { localTime, styleFor } from "../print/style.ts";
import { watchForStop } from "../stop.ts";

const DEFAULT_LIMIT = 50;
const VERBS = ["list", "show", "export", "import", "name", "hop", "delete"] as const;
type Verb = (typeof VERBS)[number];

export const threadsCommand: Command = {
  usage:
    "threads list | show ID | export ID [--html] | import ID | import --list | name ID NAME | hop ID ENVELOPE | hop ID --back | delete ID",
  about:
    "Lists the threads of this folder, newest first, shows every event of one, writes one out as lines that can be\n" +
    "verified elsewhere, imports a conversation that an agent program keeps on this machine, names one, takes\n" +
    "one into another envelope, or deletes what one said. ID is an id, its first 8 characters or more, or a name; of import\n" +
    "it is the id of the conversation. Records of other programs are only read; importing again adds what came after.",
  subcommands: VERBS,
  options: [
    { name: "json", help: "JSON lines: threads as rows, events as stored" },
    { name: "all", of: "list", help: "Threads of every folder" },
    { name: "cd", short: "C", value: "DIR", of: "list", completes: "folder", help: "Threads of another folder" },
    { name: "list", of: "import", help: "The conversations that can be imported, newest first" },
    {
      name: "from",
      value: "RUNNER",
      of: "import",
      help: "Only of this program: codex, claude, opencode or a runner of its kind",
    },
    { name: "limit", value: "N", of: ["list", "import"], help: `How many to list (default ${DEFAULT_LIMIT})` },
    { name: "after", value: "ID", of: "list", help: "Continue after this thread of an earlier list" },
    { name: "reason", value: "TEXT", of: "hop", help: "Why, for the record" },
    { name: "back", of: "hop", help: "Into the envelope that was left last" },
    { name: "carry", value: "JSON", of: "hop", help: "What the edge carries, as an object" },
    { name: "outcome", value: "JSON", of: "hop", help: "What the envelope is left with" },
    { name: "output", short: "o", value: "FILE", of: "export", completes: "file", help: "Write there, not to stdout" },
    { name: "html", of: "export", help: "As one page for people, which a browser opens without a server" },
  ],
  examples: [
    "heddle threads list --all",
    "heddle threads show 01a1ddef",
    "heddle threads show 01a1ddef --json | tail -1",
    "heddle threads import --list --from codex",
    "heddle threads import 0199f3a2-7c11",
    `heddle threads name 01a1ddef "the flaky test"`,
    `heddle threads hop 01a1ddef edit --reason "the cause is found"`,
    "heddle threads export 01a1ddef -o thread.jsonl",
    "heddle threads export 01a1ddef --html -o thread.html",
    "heddle threads delete 01a1ddef",
  ],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const out = openScreen(process.stdout, { isRaw: args.has("json") || args.positionals[0] === "export" });
  const [word, id, ...more] = args.positionals;
  const verb = VERBS.find((known) => known === word);
  if (verb === undefined) {
    throw usage(`write heddle threads ${VERBS.join(", ")}${word === undefined ? "" : didYouMean(word, VERBS)}`);
  }
  const foreign = foreignOption(threadsCommand.options, args, verb);
  if (foreign !== undefined) throw usage(`--${foreign.name} belongs to heddle threads ${foreign.owners.join(" and ")}`);
  if (verb === "list") {
    if (id !== undefined) throw usage("heddle threads list takes no arguments; -C DIR names a folder");
    return list(args, context, out);
  }
  if (verb === "import") return (await import("./threads-import.ts")).importThreads(args, context, out, limitOf(args));
  const wanted = verb === "name" || (verb === "hop" && !args.has("back")) ? 1 : 0;
  if (id === undefined || more.length !== wanted) throw usage(`write heddle threads ${FORMS[verb]}`);
  if (verb === "show") return show(id, args, context, out);
  if (verb === "export") return (args.has("html") ? exportPage : exportOne)(id, args, context, out);
  if (verb === "hop") return hop(id, args, context, out);
  return change(id, context, async (heddle, thread) => {
    if (verb === "name") await heddle.as(OWNER).nameThread({ threadId: thread.id, name: more[0] ?? "" });
    else await deleteOne(heddle, thread.id);
    const done = verb === "name" ? `is now called ${visibleLine(more[0] ?? "")}` : "is deleted";
    await out.write(args.has("json") ? toLine({ id: thread.id, [verb]: more[0] ?? true }) : `${thread.id} ${done}\n`);
  });
}

/** A user who deletes a thread waits until its space is freed, and is told what prevents that. */
export async function deleteOne(heddle: Heddle, threadId: string): Promise<void> {
  await heddle.as(OWNER).deleteThread({ threadId });
  await heddle.journal.settled();
  const left = heddle.journal.notices.find(({ kind }) => kind === "purge-unsettled");
  if (left !== undefined) say(visibleLine(left.message));
}

const FORMS: Readonly<Record<Exclude<Verb, "list" | "import">, string>> = {
  show: "show ID; heddle threads list shows them",
  export: "export ID; heddle threads list shows them",
  name: `name ID "NAME"`,
  hop: `hop ID ENVELOPE --reason "…", or hop ID --back; heddle envelopes shows them`,
  delete: "delete ID; heddle threads list shows them",
};

async function hop(id: string, args: ParsedArgs, context: CommandContext, out: Output): Promise<number> {
  const isBack = args.has("back");
  const reason = args.value("reason") ?? (isBack ? "back" : undefined);
  if (reason === undefined || reason === "") throw usage(`say why: heddle threads hop ID ENVELOPE --reason "…"`);
  const carry = jsonOption(args, "carry");
  const outcome = jsonOption(args, "outcome");
  if (carry !== undefined && (typeof carry !== "object" || carry === null || Array.isArray(carry))) {
    throw usage("--carry must be a JSON object");
  }
  const request = {
    to: isBack ? "back" : (args.positionals[2] ?? ""),
    reason,
    ...(carry === undefined ? {} : { carry: Object.fromEntries(Object.entries(carry)) }),
    ...(outcome === undefined ? {} : { outcome }),
  };
  return change(id, context, async (heddle, thread) => {
    const hopped = await heddle.as(OWNER).hopThread({ threadId: thread.id, ...request });
    const { from, to } = hopped;
    await out.write(
      args.has("json") ? toLine({ id: thread.id, ...hopped }) : `${thread.id} left ${from} and is in ${to}\n`,
    );
  });
}

function jsonOption(args: ParsedArgs, name: string): unknown {
  const text = args.value(name);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw usage(`--${name} is not JSON: ${jsonProblem(text)}`);
  }
}

const SHOWN_ELSEWHERE = 5;

/** Far more than anybody has; a list goes no further. */
const MAX_LISTED = 100_000;

function limitOf(args: ParsedArgs): number {
  const limit = Number(args.value("limit") ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1) throw usage(`--limit must be a whole number above 0`);
  return limit;
}

async function list(args: ParsedArgs, { env, cwd }: CommandContext, out: Output): Promise<number> {
  const limit = limitOf(args);
  const folder = args.value("cd");
  if (args.has("all") && folder !== undefined) throw usage("--all and -C contradict each other; give one of them");
  const workspace = args.has("all") ? undefined : await openWorkspace(folder, cwd);
  await using journal = await openRecord(env);
  const { rows, hasMore } = await page(journal, workspace, { limit, after: args.value("after") });
  if (args.has("json")) {
    for (const row of rows) await out.write(toLine(row));
    return EXIT.ok;
  }
  if (rows.length === 0 && args.value("after") === undefined) await listElsewhere(journal, workspace, out);
  for (const row of rows) await out.write(`${rowLine(row, workspace === undefined)}\n`);
  const last = rows.at(-1);
  if (hasMore && last !== undefined) await out.write(`… more: heddle threads list --after ${last.id}\n`);
  return EXIT.ok;
}

/** A user who lists in a folder without threads most likely looks for those of another one. */
async function listElsewhere(journal: Journal | undefined, workspace: string | undefined, out: Output): Promise<void> {
  const others = workspace === undefined ? [] : ((await journal?.threads.list({ limit: SHOWN_ELSEWHERE })) ?? []);
  if (others.length === 0) return out.write(`no threads yet; heddle exec "…" makes one\n`);
  await out.write(`no threads in ${visibleLine(workspace ?? "")}; the latest of other folders:\n`);
  for (const row of others) await out.write(`${rowLine(row, true)}\n`);
  await out.write("all of them: heddle threads list --all; those of one folder: heddle threads list -C DIR\n");
}

async function page(
  journal: Journal | undefined,
  workspace: string | undefined,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): Promise<{ readonly rows: readonly ThreadRow[]; readonly hasMore: boolean }> {
  if (journal === undefined) return { rows: [], hasMore: false };
  const query = workspace === undefined ? {} : { workspace };
  const all = await journal.threads.list({
    ...query,
    withChildren: true,
    limit: after === undefined ? limit + 1 : MAX_LISTED,
  });
  const last = after === undefined ? undefined : (await findThread(journal, after)).id;
  const from = last === undefined ? 0 : all.findIndex(({ id }) => id === last) + 1;
  if (last !== undefined && from === 0) throw usage(`--after ${after}: this thread is not in the list`);
  const rows = all.slice(from, from + limit);
  return { rows, hasMore: all.length > from + limit };
}

function rowLine(row: ThreadRow, hasFolder: boolean): string {
  const when = localTime(row.updatedAt);
  const turns = counted(row.turnCount, "turn");
  const columns = [row.name ?? row.title, row.preview].filter((text) => text !== undefined).map(visibleLine);
  const folder = hasFolder ? `  ${visibleLine(row.workspace)}` : "";
  const parent = row.parent === undefined ? "" : `  (child of ${row.parent.threadId})`;
  return `${row.id}  ${when}  ${turns.padEnd(8)}${folder}  ${columns.join(": ")}${parent}`.trimEnd();
}

async function show(id: string, args: ParsedArgs, { env }: CommandContext, out: Output): Promise<number> {
  await using journal = await requireRecord(env, id);
  const thread = await findThread(journal, id);
  const style = styleFor("auto", out.isTerminal, env);
  for await (const event of allEvents(journal, thread.id)) {
    if (out.isClosed) break;
    await out.write(args.has("json") ? toLine(event) : `${eventLines(event, style).join("\n")}\n`);
  }
  const takeover = args.has("json") ? undefined : await readTakeover(journal, thread.id, heddleHome(env));
  if (takeover !== undefined) await out.write(`take over: ${takeover.command}  (${byHand(takeover)})\n`);
  if (takeover?.join !== undefined) await out.write(`join what runs: ${takeover.join}\n`);
  return EXIT.ok;
}

export async function exportOne(id: string, args: ParsedArgs, context: CommandContext, out: Output): Promise<number> {
  await using journal = await requireRecord(context.env, id);
  const thread = await findThread(journal, id);
  const lines = exportThread(journal, thread.id, { withOutputs: args.has("outputs") });
  const file = args.value("output");
  if (file === undefined) {
    for await (const line of lines) await out.write(line.endsWith("\n") ? line : `${line}\n`);
    return EXIT.ok;
  }
  const { holdOutputFile } = await import("../output-file.ts");
  using held = await holdOutputFile(["-o", file], context, { roots: [thread.workspace], mode: 0o600 });
  try {
    await held.write(withLineEnds(lines));
  } catch (error) {
    if (isHeddleError(error)) throw error;
    const why = reasonOf(error);
    throw new HeddleError("usage.invalid", `-o ${held.path} could not be written: ${why}`, { cause: error });
  }
  return EXIT.ok;
}

async function exportPage(id: string, args: ParsedArgs, context: CommandContext, out: Output): Promise<number> {
  const { writeRunPage } = await import("../run-page/write-run-page.ts");
  await using journal = await requireRecord(context.env, id);
  const { id: threadId, workspace } = await findThread(journal, id);
  using stop = watchForStop(undefined);
  const run = { journal, task: undefined, threadId, roots: [workspace], signal: stop.signal };
  const code = await writeRunPage(run, args, context, out);
  return stop.exitCode ?? code;
}

async function* withLineEnds(lines: AsyncIterable<string>): AsyncGenerator<string, void, void> {
  for await (const line of lines) yield line.endsWith("\n") ? line : `${line}\n`;
}

export async function requireRecord(env: NodeJS.ProcessEnv, id: string): Promise<Journal> {
  const journal = await openRecord(env);
  if (journal !== undefined) return journal;
  throw new HeddleError("thread.not-found", `there is no thread ${visibleLine(id)}: ${heddleHome(env)} has no record`);
}

export async function change(
  id: string,
  { env }: CommandContext,
  act: (heddle: Heddle, thread: ThreadRow) => Promise<void>,
): Promise<number> {
  // Only to see that there is something to change; nothing is made where nothing is.
  await (await requireRecord(env, id))[Symbol.asyncDispose]();
  const redactor = createRedactor(await knownSecrets(env));
  await using heddle = await openHeddle({
    home: heddleHome(env),
    store: await storeAddressOf(env),
    providers: [],
    env,
    redactor,
    isUnattended: true,
  });
  await act(heddle, await heddle.findThread(id));
  return EXIT.ok;
}
