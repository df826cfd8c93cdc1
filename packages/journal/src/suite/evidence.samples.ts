/** Random entries of the evidence, and a filter that looks at each of them, for tests. */
import type { EventBody, EvidenceClaim, EvidenceEntry, EvidenceQuery, EvidenceRef } from "@heddle/protocol";
import type { Journal } from "../journal.ts";
import { admitted, completed, said } from "./journal.samples.ts";

const CLAIMS: readonly EvidenceClaim[] = ["goal", "step", "conclusion", "question", "correction"];

export interface NoteFields {
  readonly text: string;
  readonly claim?: EvidenceClaim;
  readonly tags?: readonly string[];
  readonly refs?: readonly EvidenceRef[];
  readonly subject?: EvidenceRef;
  readonly replyTo?: string;
}

let notes = 0;

export function noted({ text, claim = "step", tags = [], refs = [], ...more }: NoteFields): EventBody {
  notes += 1;
  return {
    type: "evidence.noted",
    v: 1,
    noteId: `note_${notes}`,
    claim,
    text,
    tags: [...tags],
    refs: [...refs],
    ...more,
  };
}

export function settled(turnId: string, tool: string, output: string): EventBody {
  const call = { turnId, callId: `call_${tool}`, itemId: "item_1", tool };
  return { type: "tool.settled", v: 1, ...call, outcome: "ok", output: [{ type: "text", text: output }] };
}

export function started(turnId: string, envelopeHash: string): EventBody {
  const envelope = {
    id: "edit",
    tools: [],
    effects: [],
    writeRoots: [],
    masked: [],
    network: "none",
    sandbox: "required",
    approval: "never",
  } as const;
  return {
    type: "turn.started",
    v: 1,
    turnId,
    runner: "embedded",
    sandboxLevel: "namespaces",
    envelope: { ...envelope, tools: [], effects: [], writeRoots: [], masked: [] },
    envelopeHash,
  };
}

export interface Chance {
  readonly below: (limit: number) => number;
  readonly one: <T>(values: readonly T[]) => T;
}

/** The same numbers in every run. */
export function chance(seed: number): Chance {
  let state = seed;
  const below = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  return {
    below,
    one: <T>(values: readonly T[]): T => {
      const value = values[below(values.length)];
      if (value === undefined) throw new Error("one of nothing");
      return value;
    },
  };
}

const WORDS = ["alpha", "beta", "gamma", "größe", "naïve", "日本", "delta-7", "OR", "NEAR", "x_y", "😀", "end"];
const TAGS = ["red", "green", "blue", "a/b", "k:v"];
const TOOLS = ["exec_command", "apply_patch", "read"];
const AUTHORS = ["user:owner", "agent:embedded", "agent:other", "system"] as const;

/** In twelve threads, three of them forks, and one task, over days in which the clock sometimes goes back. */
export async function fillEvidence(
  journal: Journal,
  { entries, setTime }: { readonly entries: number; readonly setTime: (at: number) => void },
): Promise<void> {
  const { below, one } = chance(7);
  const threads = Array.from({ length: 12 }, (_, index) => `thread-${index}`);
  let at = 1_700_000_000_000;
  for (const [index, stream] of threads.entries()) {
    setTime(at);
    const fork = index < 9 ? {} : { forkedFrom: { threadId: `thread-${index % 2}`, version: 1 } };
    const begun: EventBody = { type: "thread.created", v: 1, workspace: "/w", origin: "exec", ...fork };
    await journal.append({ stream, author: "user:owner", events: [begun] });
  }
  const ids: string[] = [];
  for (let made = 0; made < entries;) {
    at += below(20) === 0 ? -below(7_200_000) : below(900_000);
    setTime(at);
    const turn = `turn-${below(60)}`;
    const text = Array.from({ length: 1 + below(6) }, () => one(WORDS)).join(" ");
    const subject = { type: one(["file", "commit", "topic"]), id: `s${below(9)}` };
    const events: EventBody[] = [
      started(turn, `hash-${below(4)}`),
      settled(turn, one(TOOLS), text),
      noted({
        text,
        claim: one(CLAIMS),
        tags: TAGS.filter(() => below(3) === 0),
        refs: below(2) === 0 ? [{ type: "file", id: `/src/${below(20)}.ts` }] : [],
        ...(below(2) === 0 ? { subject } : {}),
        ...(ids.length > 0 && below(3) === 0 ? { replyTo: one(ids) } : {}),
      }),
      below(2) === 0 ? said(text, turn) : completed(turn, below(2) === 0 ? undefined : "tool.failed"),
      ...(below(8) === 0 ? [admitted(turn)] : []),
    ];
    const appended = await journal.append({
      stream: one(threads),
      author: one(AUTHORS),
      events,
      durability: "relaxed",
    });
    made += events.length - 1;
    for (const { id, body } of appended.events) if (body.type === "evidence.noted") ids.push(id);
  }
}

/** Every entry there is, oldest first, one by one. */
export async function everyEntry(journal: Journal): Promise<readonly EvidenceEntry[]> {
  const entries: EvidenceEntry[] = [];
  for (let after = 0; ;) {
    const events = await journal.read({ after, limit: 1000 });
    for (const { id } of events) {
      const record = await journal.evidence.get(id);
      if (record === undefined) continue;
      const { body: _body, ...entry } = record;
      entries.push(entry);
    }
    const last = events.at(-1);
    if (last === undefined) return entries;
    after = last.position;
  }
}

/** A query with some of the filters, with values that occur and some that do not. */
export function randomQuery(all: readonly EvidenceEntry[], { below, one }: Chance): EvidenceQuery {
  const like = one(all);
  const filters: readonly EvidenceQuery[] = [
    { subject: below(2) === 0 ? like.subject : { type: like.subject.type } },
    { ref: one(like.refs.length > 0 ? like.refs : [{ type: "file", id: "/src/3.ts" }]) },
    { tags: like.tags.length > 0 ? like.tags : ["red", "blue"] },
    { anyTag: ["green", one(["k:v", "nowhere"])] },
    { thread: below(2) === 0 ? like.stream : [like.stream, "thread-3", "nowhere"] },
    { turn: like.turn ?? "turn-1" },
    { author: below(2) === 0 ? like.author : ["agent:other", "system"] },
    { type: one([like.type, "tool.*", ["evidence.noted", "turn.*"], "nothing.here"]) },
    { claim: below(2) === 0 ? like.claim : ["goal", "correction"] },
    { envelope: like.envelope ?? "hash-1" },
    { replyTo: like.replyTo ?? one(all).id },
    { forkOf: one(["thread-0", "thread-1", "thread-5"]) },
    { since: one(all).at },
    { before: one(all).at },
    { text: one([one(WORDS), `${one(WORDS)} ${one(WORDS)}`, "ALPHA", "grosse", "grösse", "nothing"]) },
  ];
  const picked = Array.from({ length: 1 + below(4) }, () => one(filters));
  return { ...Object.assign({}, ...picked), ...(below(3) === 0 ? { order: "oldest" as const } : {}) };
}

const FORKS: Readonly<Record<string, string>> = {
  "thread-9": "thread-1",
  "thread-10": "thread-0",
  "thread-11": "thread-1",
};

/** As a reader of every entry would decide, without any index. */
export function isWanted(entry: EvidenceEntry, query: EvidenceQuery): boolean {
  const among = (asked: string | readonly string[] | undefined, value: string | undefined): boolean =>
    asked === undefined || (value !== undefined && [asked].flat().includes(value));
  const types = query.type === undefined ? undefined : [query.type].flat();
  return (
    (query.subject === undefined ||
      (query.subject.type === entry.subject.type && among(query.subject.id, entry.subject.id))) &&
    (query.ref === undefined || entry.refs.some(({ type, id }) => type === query.ref?.type && id === query.ref.id)) &&
    (query.tags ?? []).every((tag) => entry.tags.includes(tag)) &&
    (query.anyTag === undefined || query.anyTag.some((tag) => entry.tags.includes(tag))) &&
    among(query.thread, entry.thread) &&
    among(query.turn, entry.turn) &&
    among(query.task, entry.task) &&
    among(query.author, entry.author) &&
    (types === undefined ||
      types.some((type) => (type.endsWith(".*") ? entry.type.startsWith(type.slice(0, -1)) : type === entry.type))) &&
    among(query.claim, entry.claim) &&
    among(query.envelope, entry.envelope) &&
    among(query.replyTo, entry.replyTo) &&
    among(query.forkOf, FORKS[entry.stream]) &&
    entry.at >= (query.since ?? 0) &&
    entry.at < (query.before ?? Infinity) &&
    (query.text === undefined || plainWords(query.text).every((word) => plainWords(entry.text).includes(word)))
  );
}

/** Words for the texts of these samples; the characters of 日本 are words of their own. */
function plainWords(text: string): string[] {
  const plain = text
    .normalize("NFD")
    .replaceAll(/[\u0300-\u036f]/g, "")
    .toLowerCase();
  return plain
    .replaceAll(/[日本]/g, " $& ")
    .split(/[ _.:,\n-]+/)
    .filter((word) => word !== "");
}
