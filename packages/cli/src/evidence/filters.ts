/** The filters of `heddle evidence` as options. What a query may hold is checked by whoever answers it. */
import type { EvidenceQuery } from "@heddle/protocol";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";

const ASKING = ["query", "count", "tail"];

export const FILTER_OPTIONS: readonly OptionSpec[] = [
  { name: "thread", isMultiple: true, value: "ID", of: ASKING, help: "Entries of this thread; may be repeated" },
  { name: "turn", value: "ID", of: ASKING, help: "Entries of this turn" },
  {
    name: "task",
    isMultiple: true,
    value: "ID",
    of: ASKING,
    help: "Of this task, and of threads while they worked on it; may be repeated",
  },
  {
    name: "author",
    isMultiple: true,
    value: "NAME",
    of: ASKING,
    help: "user:NAME, agent:NAME, policy:NAME or system; may be repeated",
  },
  {
    name: "type",
    isMultiple: true,
    value: "TYPE",
    of: ASKING,
    help: "Type of the event, or tool.* for all that begin so; may be repeated",
  },
  {
    name: "claim",
    isMultiple: true,
    value: "CLAIM",
    of: [...ASKING, "note"],
    help: "goal, step, conclusion, question or correction",
  },
  {
    name: "subject",
    value: "TYPE[:ID]",
    of: [...ASKING, "note"],
    help: "What it is about: tool:read, file:/path, task",
  },
  { name: "ref", value: "TYPE:ID", of: ASKING, help: "What it refers to: file:/path, commit:SHA, check:NAME" },
  {
    name: "file",
    isMultiple: true,
    value: "PATH",
    of: [...ASKING, "note"],
    help: "Short for --ref file:PATH; repeated in a note",
  },
  { name: "tag", isMultiple: true, value: "TAG", of: [...ASKING, "note"], help: "Has this tag; repeated: all of them" },
  { name: "any-tag", isMultiple: true, value: "TAG", of: ASKING, help: "Has one of these tags; may be repeated" },
  { name: "envelope", value: "HASH", of: ASKING, help: "In force was the envelope with this hash" },
  { name: "reply-to", value: "ID", of: [...ASKING, "note"], help: "Answers to this entry" },
  { name: "fork-of", value: "THREAD", of: ASKING, help: "Entries of threads that were forked from this one" },
  { name: "since", value: "WHEN", of: ASKING, help: "From then on: 30m, 2h, 7d, or 2026-11-18T08:00" },
  { name: "before", value: "WHEN", of: ASKING, help: "Earlier than then" },
  { name: "origin", value: "WHERE", of: ASKING, help: "local (default), imported or any" },
  { name: "oldest", of: "query", help: "Oldest first" },
  { name: "limit", value: "N", of: "query", help: "How many entries, 1 to 1000 (default 100)" },
  { name: "cursor", value: "TEXT", of: "query", help: "Continue where an earlier answer ended" },
];

export function queryFrom(args: ParsedArgs, text: readonly string[], now: number): EvidenceQuery {
  const values = new Map<string, unknown>([
    ["thread", many(args.values("thread"))],
    ["turn", args.value("turn")],
    ["task", many(args.values("task"))],
    ["author", many(args.values("author"))],
    ["type", many(args.values("type"))],
    ["claim", many(args.values("claim"))],
    ["subject", subjectOf(args.value("subject"))],
    ["ref", refOf(args)],
    ["tags", many(args.values("tag"))],
    ["anyTag", many(args.values("any-tag"))],
    ["envelope", args.value("envelope")],
    ["replyTo", args.value("reply-to")],
    ["forkOf", args.value("fork-of")],
    ["since", timeOf(args, "since", now)],
    ["before", timeOf(args, "before", now)],
    ["text", text.length === 0 ? undefined : text.join(" ")],
    ["origin", args.value("origin")],
    ["order", args.has("oldest") ? "oldest" : undefined],
    ["limit", numberOf(args.value("limit"))],
    ["cursor", args.value("cursor")],
  ]);
  // The journal parses every query, so that each door says the same of a wrong value.
  return Object.fromEntries([...values].filter(([, value]) => value !== undefined));
}

function many(values: readonly string[]): readonly string[] | undefined {
  return values.length === 0 ? undefined : values;
}

function subjectOf(text: string | undefined): EvidenceQuery["subject"] {
  if (text === undefined) return undefined;
  const at = text.indexOf(":");
  return at < 0 ? { type: text } : { type: text.slice(0, at), id: text.slice(at + 1) };
}

function refOf(args: ParsedArgs): EvidenceQuery["ref"] {
  const [ref, file] = [args.value("ref"), args.values("file")[0]];
  if (ref !== undefined && file !== undefined) throw usage("--ref and --file contradict each other; give one of them");
  if (file !== undefined) return { type: "file", id: file };
  if (ref === undefined) return undefined;
  const at = ref.indexOf(":");
  if (at < 1 || at === ref.length - 1) throw usage("--ref must be TYPE:ID, such as file:/path or commit:SHA");
  return { type: ref.slice(0, at), id: ref.slice(at + 1) };
}

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function timeOf(args: ParsedArgs, name: "since" | "before", now: number): number | undefined {
  const text = args.value(name);
  if (text === undefined) return undefined;
  const [, count, unit = ""] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const at = count === undefined ? Date.parse(text) : now - Number(count) * (UNITS[unit] ?? 0);
  if (Number.isNaN(at))
    throw usage(`--${name} must be an age such as 30m, 2h or 7d, or a time such as 2026-11-18T08:00`);
  return at;
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}
