/** `heddle threads`: what is in the record, for people and, with --json, as it is stored. */
import { HeddleError, visibleLine } from "@heddle/protocol";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { eventLines } from "../print/events.ts";
import { toLine } from "../print/jsonl.ts";
import { openOutput, type Output } from "../print/output.ts";
import { styleFor } from "../print/style.ts";
import { allEvents, openRecord } from "../record.ts";
import { didYouMean } from "../suggest.ts";

const DEFAULT_LIMIT = 50;

export const threadsCommand: Command = {
  usage: "threads list | threads show ID",
  about: "Lists threads, newest first, or shows every event of one. A unique beginning of an ID is enough.",
  options: [
    { name: "json", help: "JSON lines: threads as rows, events as stored" },
    { name: "limit", value: "N", help: `How many threads to list (default ${DEFAULT_LIMIT})` },
  ],
  examples: ["heddle threads list", "heddle threads show 01a1ddef", "heddle threads show 01a1ddef --json | tail -1"],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const out = openOutput(process.stdout);
  const [verb, id, ...more] = args.positionals;
  if (verb === "list" && id === undefined) return list(args, context, out);
  if (verb === "show" && id !== undefined && more.length === 0) return show(id, args, context, out);
  if (verb === "show") throw usage("name one thread: heddle threads show ID; heddle threads list shows them");
  const hint = verb === undefined ? "" : didYouMean(verb, ["list", "show"]);
  throw usage(`write heddle threads list, or heddle threads show ID${hint}`);
}

async function list(args: ParsedArgs, { env }: CommandContext, out: Output): Promise<number> {
  const limit = Number(args.value("limit") ?? DEFAULT_LIMIT);
  if (!Number.isInteger(limit) || limit < 1) throw usage(`--limit must be a whole number above 0`);
  await using journal = await openRecord(env);
  const rows = (await journal?.threads.list({ limit })) ?? [];
  if (args.has("json")) {
    for (const row of rows) await out.write(toLine(row));
    return 0;
  }
  if (rows.length === 0) await out.write(`no threads yet; heddle exec "…" makes one\n`);
  for (const row of rows) {
    const when = new Date(row.updatedAt).toISOString().slice(0, 16).replace("T", " ");
    const turns = `${row.turnCount} turn${row.turnCount === 1 ? "" : "s"}`;
    const title = row.title === undefined ? "" : `  ${visibleLine(row.title)}`;
    await out.write(`${row.id}  ${when}  ${turns.padEnd(8)}  ${visibleLine(row.workspace)}${title}\n`);
  }
  return 0;
}

async function show(id: string, args: ParsedArgs, { env }: CommandContext, out: Output): Promise<number> {
  await using journal = await openRecord(env);
  const threadId = journal === undefined ? undefined : await findThread(journal, id);
  if (journal === undefined || threadId === undefined) {
    throw new HeddleError("thread.not-found", `there is no thread ${id}; heddle threads list shows them`);
  }
  const style = styleFor("auto", out.isTerminal, env);
  for await (const event of allEvents(journal, threadId)) {
    if (out.isClosed) break;
    await out.write(args.has("json") ? toLine(event) : `${eventLines(event, style).join("\n")}\n`);
  }
  return 0;
}

/** Far more than anybody has; a beginning that fits none of these is not a beginning people type. */
const MAX_SEARCHED = 10_000;

type ThreadReader = NonNullable<Awaited<ReturnType<typeof openRecord>>>;

async function findThread(journal: ThreadReader, id: string): Promise<string | undefined> {
  if ((await journal.threads.get(id)) !== undefined) return id;
  const rows = await journal.threads.list({ limit: MAX_SEARCHED });
  const matches = rows.filter((row) => row.id.startsWith(id));
  if (matches.length > 1) throw usage(`${matches.length} threads begin with ${id}; write more of the ID`);
  return matches[0]?.id;
}
