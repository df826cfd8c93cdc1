/** `heddle evidence`: what anybody did, asked and concluded here, found by what it is about. */
import { findEntry, findThread, noteEvidence, purgeNote } from "@heddle/agent";
import type { Journal } from "@heddle/journal";
import {
  didYouMean,
  EvidenceClaim,
  EXIT,
  HeddleError,
  OWNER,
  visibleLine,
  visibleText,
  type EvidenceEntry,
  type EvidenceNote,
  type EvidenceRef,
} from "@heddle/protocol";
import { heddleHome } from "@heddle/runtime/config";
import { openRecord } from "@heddle/runtime/record";
import { foreignOption, usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { FILTER_OPTIONS, queryFrom } from "../evidence/filters.ts";
import { listGates, runGate } from "../evidence/gates.ts";
import { wholeIds } from "../evidence/whole-ids.ts";
import { toLine } from "../print/jsonl.ts";
import type { Output } from "../print/output.ts";
import { openScreen } from "../print/screen.ts";
import { localTime } from "../print/style.ts";
import { change, deleteOne, exportOne } from "./threads.ts";

const VERBS = [
  "query",
  "count",
  "show",
  "chain",
  "tail",
  "note",
  "gate",
  "gates",
  "export",
  "import",
  "collect",
  "purge",
] as const;
type Verb = (typeof VERBS)[number];

const FORMS: Readonly<Record<Verb, string>> = {
  query: "query [TEXT]",
  count: "count [TEXT]",
  show: "show ID | blob:SHA256",
  chain: "chain ID",
  tail: "tail [TEXT]",
  note: "note [THREAD] TEXT",
  gate: "gate THREAD NAME",
  gates: "gates",
  export: "export THREAD",
  import: "import FILE",
  collect: "collect",
  purge: "purge THREAD | IMPORT | ID",
};

export const evidenceCommand: Command = {
  usage: `evidence ${VERBS.map((verb) => FORMS[verb]).join(" | ")}`,
  about:
    "Finds what agents and users did, asked and concluded in this home, newest first: calls and their results, approvals,\n" +
    "hops, hooks, checks, answers and notes. TEXT is words that an entry must have, all of them. show prints one entry with\n" +
    "its whole event, chain what it replies to and what replied to it, tail what comes from now on. note adds a note of\n" +
    "yours to a thread, or without one about a subject. gate runs a gate, a named sequence of guards, on a thread, and its\n" +
    "proof becomes an entry; gates lists those that can be named in this folder. export writes a thread as lines that\n" +
    "heddle verify checks on any machine, import takes over the entries of such a file, once its signatures are verified\n" +
    "and its key is trusted: --origin imported finds them, and nothing else uses them. show blob:SHA256 prints a whole\n" +
    "output that did not fit into the record, collect removes those that nothing names, and what outputs.max_mb and\n" +
    "outputs.max_days of the configuration say. purge deletes what a thread said, what was imported, or a note that is in no\n" +
    "thread, here and in every index; its chain still verifies.",
  subcommands: VERBS,
  options: [
    { name: "json", help: "JSON lines: entries as they are" },
    ...FILTER_OPTIONS,
    { name: "after", value: "POSITION", of: "tail", help: "Begin after this position, with what is stored already" },
    {
      name: "output",
      short: "o",
      value: "FILE",
      of: ["export", "show"],
      completes: "file",
      help: "Write there, not to stdout; of show: a whole output",
    },
    { name: "outputs", of: "export", help: "With the whole outputs that it names" },
    {
      name: "trust-key",
      value: "KEY",
      of: "import",
      help: "Trust this key from now on: its id, or a file that holds it",
    },
    { name: "dry-run", of: "collect", help: "Only say what would be removed" },
  ],
  examples: [
    'heddle evidence query "cache cleared"',
    "heddle evidence query --file /home/me/app/src/cache.ts --limit 5",
    "heddle evidence query --type tool.settled --tag failed --since 2h",
    "heddle evidence query --claim correction --json",
    "heddle evidence show evt_01a1ddef-93e0-7cc1-b9f2-37a1a9a5b6b5",
    "heddle evidence tail --author agent:embedded",
    'heddle evidence note 01a1ddef "the flaky test needs a free port" --claim conclusion --tag tests',
    'heddle evidence note "never build on Fridays" --subject lesson:builds --tag builds',
    "heddle evidence gate 01a1ddef ready-to-deploy",
    "heddle evidence export 01a1ddef -o thread.jsonl && heddle verify thread.jsonl",
    "heddle evidence import thread.jsonl --trust-key 9f86d081884c7d65",
    "heddle evidence query --origin imported",
    "heddle evidence collect --dry-run",
    "heddle evidence purge 01a1ddef",
  ],
  run,
};

async function run(args: ParsedArgs, context: CommandContext): Promise<number> {
  const [word, ...given] = args.positionals;
  const verb = VERBS.find((known) => known === word);
  if (verb === undefined) {
    throw usage(`write heddle evidence ${VERBS.join(", ")}${word === undefined ? "" : didYouMean(word, VERBS)}`);
  }
  const foreign = foreignOption(evidenceCommand.options, args, verb);
  if (foreign !== undefined)
    throw usage(`--${foreign.name} belongs to heddle evidence ${foreign.owners.join(" and ")}`);
  const form = (): HeddleError => usage(`write heddle evidence ${FORMS[verb]}`);
  const out = openScreen(process.stdout, { isRaw: args.has("json") || verb === "export" });
  const [id = "", ...more] = given;
  switch (verb) {
    case "query":
    case "count":
    case "tail":
      return answer(verb, { args, context, out, text: given });
    case "show":
      if (id.startsWith(BLOB) && more.length === 0)
        return (await outputs()).showOutput(id.slice(BLOB.length), args, context);
      if (args.has("output")) throw usage("-o is for a whole output: heddle evidence show blob:SHA256 -o FILE");
      if (id === "" || more.length > 0) throw form();
      return look(verb, id, { args, context, out });
    case "chain":
      if (id === "" || more.length > 0) throw form();
      return look(verb, id, { args, context, out });
    case "note":
      if (id === "" || (more.length === 0 && !args.has("subject"))) throw form();
      return note(more.length === 0 ? { text: id } : { thread: id, text: more.join(" ") }, { args, context, out });
    case "gate":
      if (id === "" || more.length !== 1) throw form();
      return runGate({ thread: id, name: more[0] ?? "" }, { args, context, out });
    case "gates":
      if (id !== "") throw form();
      return listGates({ args, context, out });
    case "export":
      if (id === "" || more.length > 0) throw form();
      return exportOne(id, args, context, out);
    case "import":
      if (id === "" || more.length > 0) throw form();
      return (await imports()).importOne(id, args, context, out);
    case "collect":
      if (id !== "") throw form();
      return (await outputs()).collect(args, context, out);
    case "purge":
      if (id === "" || more.length > 0) throw form();
      if (id.startsWith(IMPORT)) return (await imports()).purgeOneImport(id, args, context, out);
      if (id.startsWith("evt_")) return purgeOne(id, { args, context, out });
      return change(id, context, async (heddle, thread) => {
        await deleteOne(heddle, thread.id);
        await out.write(args.has("json") ? toLine({ thread: thread.id, purged: true }) : `${thread.id} is purged\n`);
      });
  }
}

const BLOB = "blob:";
const IMPORT = "import_";
const outputs = () => import("../evidence/outputs.ts");
const imports = () => import("../evidence/imports.ts");

interface Asked {
  readonly args: ParsedArgs;
  readonly context: CommandContext;
  readonly out: Output;
}

async function answer(
  verb: "query" | "count" | "tail",
  { args, context, out, text }: Asked & { readonly text: readonly string[] },
): Promise<number> {
  const filters = queryFrom(args, text, Date.now());
  await using journal = await openRecord(context.env);
  const query = { ...filters, ...(await wholeIds(journal, args)) };
  const print = (entry: EvidenceEntry): Promise<void> =>
    out.write(args.has("json") ? toLine(entry) : entryLines(entry));
  if (verb === "count") {
    const count = (await journal?.evidence.count(query)) ?? 0;
    await out.write(args.has("json") ? toLine({ count }) : `${count}\n`);
    return EXIT.ok;
  }
  if (verb === "tail") {
    if (journal === undefined) throw noRecord(context);
    await tail(journal, args, { query, print, out });
    return EXIT.ok;
  }
  const { entries, next } = (await journal?.evidence.query(query)) ?? { entries: [] };
  for (const entry of entries) await print(entry);
  if (entries.length === 0 && !args.has("json")) await out.write("no entry matches\n");
  if (next !== undefined) process.stderr.write(`heddle: there are more entries; --cursor ${next} shows them\n`);
  return EXIT.ok;
}

interface Tailing {
  readonly query: ReturnType<typeof queryFrom>;
  readonly print: (entry: EvidenceEntry) => Promise<void>;
  readonly out: Output;
}

/** Until it is interrupted, or nobody reads any more. */
async function tail(journal: Journal, args: ParsedArgs, { query, print, out }: Tailing): Promise<void> {
  const after = args.value("after");
  if (after !== undefined && !/^\d{1,15}$/.test(after)) throw usage("--after must be a position: a whole number");
  const { signal } = new AbortController();
  const from = after === undefined ? {} : { after: Number(after) };
  for await (const entry of journal.evidence.subscribe(query, { ...from, signal })) {
    if (out.isClosed) return;
    await print(entry);
  }
}

async function look(verb: "show" | "chain", selector: string, { args, context, out }: Asked): Promise<number> {
  await using journal = await openRecord(context.env);
  if (journal === undefined) throw noRecord(context);
  const id = await findEntry(journal, selector);
  const record = await journal.evidence.get(id);
  if (record === undefined) {
    throw new HeddleError(
      "evidence.not-found",
      `there is no entry ${visibleLine(id)}; heddle evidence query shows them`,
    );
  }
  const { body, ...entry } = record;
  if (verb === "show") {
    const whole = `${visibleText(JSON.stringify(body, undefined, 2))}\n`;
    await out.write(args.has("json") ? toLine(record) : `${entryLines(entry)}${whole}`);
    return EXIT.ok;
  }
  const [up, down] = [await journal.evidence.ancestors(id), await journal.evidence.descendants(id)];
  for (const one of [...up.entries.toReversed(), entry, ...down.entries]) {
    await out.write(args.has("json") ? toLine(one) : entryLines(one));
  }
  if (up.isCut || down.isCut) process.stderr.write("heddle: the chain is longer than what is shown\n");
  return EXIT.ok;
}

interface NoteWords {
  /** Absent: beside any thread. */
  readonly thread?: string;
  readonly text: string;
}

async function note({ thread, text }: NoteWords, { args, context, out }: Asked): Promise<number> {
  const claim = EvidenceClaim.safeParse(args.values("claim")[0] ?? "conclusion");
  if (!claim.success) throw usage(`--claim must be one of ${EvidenceClaim.options.join(", ")}`);
  const subject = args.value("subject");
  await using journal = await openRecord(context.env);
  if (journal === undefined) throw noRecord(context);
  const answered = args.value("reply-to");
  const replyTo = answered === undefined ? undefined : await findEntry(journal, answered);
  const given: EvidenceNote = {
    claim: claim.data,
    text,
    refs: args.values("file").map((file) => ({ type: "file", id: file })),
    tags: [...args.values("tag")],
    ...(subject === undefined ? {} : { subject: wholeRef(subject) }),
    ...(replyTo === undefined ? {} : { replyTo }),
  };
  const threadId = thread === undefined ? undefined : (await findThread(journal, thread)).id;
  const entry = await noteEvidence(journal, { threadId, note: given, by: OWNER });
  await out.write(args.has("json") ? toLine(entry) : `noted as ${entry.id}\n`);
  return EXIT.ok;
}

async function purgeOne(selector: string, { args, context, out }: Asked): Promise<number> {
  await using journal = await openRecord(context.env);
  if (journal === undefined) throw noRecord(context);
  const id = await findEntry(journal, selector);
  await purgeNote(journal, { id, by: OWNER });
  await journal.settled();
  await out.write(args.has("json") ? toLine({ id, purged: true }) : `${id} is purged\n`);
  return EXIT.ok;
}

function wholeRef(text: string): EvidenceRef {
  const [, type, id] = /^([^:]+):(.+)$/s.exec(text) ?? [];
  if (type === undefined || id === undefined) throw usage("--subject of a note is TYPE:ID");
  return { type, id };
}

function noRecord({ env }: CommandContext): HeddleError {
  return new HeddleError("evidence.not-found", `${heddleHome(env)} has no record yet; heddle exec makes one`);
}

const SHOWN_CHARS = 400;

function entryLines(entry: EvidenceEntry): string {
  const { id, at, author, claim, type, subject, correctedBy, imported } = entry;
  const head = `${id}  ${localTime(at)}  ${author}  ${claim}  ${type}  ${subject.type} ${subject.id}`;
  const text = entry.text.length <= SHOWN_CHARS ? entry.text : `${entry.text.slice(0, SHOWN_CHARS)} …`;
  const lines = text.split("\n").map((line) => `    ${visibleLine(line)}`.trimEnd());
  const corrected = correctedBy === undefined ? [] : [`    corrected by ${correctedBy}`];
  const origin = imported === undefined ? [] : [originLine(imported)];
  return `${[visibleLine(head), ...origin, ...corrected, ...lines].join("\n")}\n`;
}

/** Who said it, where and when; the line above names who imported it. */
function originLine({ keyId, author, type, at, stream }: NonNullable<EvidenceEntry["imported"]>): string {
  return visibleLine(`    imported from key ${keyId}: ${author} ${type} in ${stream} at ${localTime(at)}`);
}
