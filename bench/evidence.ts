/**
 * The evidence: appends with all its indexes, and questions to many entries. Alone, at full size, which takes minutes:
 *
 *   node --conditions=heddle-source bench/evidence.ts 1000000
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournal, type Journal } from "@heddle/journal";
import type { EventBody, EvidenceQuery } from "@heddle/protocol";
import { percentile } from "./measure.ts";

/** Of one append, as a turn with some calls makes them. */
const BATCH = 20;
const THREADS = 500;
const ROUNDS = 20;
const ASKED = 100;

export interface EvidenceFigures {
  readonly entries: number;
  readonly appendsPerSecond: number;
  /** p95 over all questions. */
  readonly indexedMs: number;
  readonly wordsMs: number;
}

export async function measureEvidence(folder: string, entries: number): Promise<EvidenceFigures> {
  const home = await mkdtemp(join(folder, "heddle-evidence-"));
  try {
    await using journal = await openJournal({ home });
    const startedAt = cpuMs();
    const ids = await fill(journal, entries);
    const appendsPerSecond = entries / ((cpuMs() - startedAt) / 1000);
    const indexedMs = percentile(await timesOf(journal, indexed(ids)), 95);
    const wordsMs = percentile(await timesOf(journal, worded()), 95);
    return { entries, appendsPerSecond, indexedMs, wordsMs };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function fill(journal: Journal, entries: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let made = 0; made < entries; made += BATCH) {
    const turn = made / BATCH;
    const events = Array.from({ length: BATCH }, (_, index) => entryOf(turn, index, ids));
    const appended = await journal.append({
      stream: `thread-${turn % THREADS}`,
      author: turn % 7 === 0 ? "agent:other" : "agent:embedded",
      events,
      durability: "relaxed",
    });
    const noted = appended.events.find(({ body }) => body.type === "evidence.noted");
    if (noted !== undefined && turn % 10 === 0) ids.push(noted.id);
    if (made % 100_000 === 0) process.stderr.write(`${made} entries\n`);
  }
  return ids;
}

/** Words as they occur: few of them often, most of them rarely. */
function words(seed: number, count: number): string {
  let state = seed + 1;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return `w${Math.floor(50_000 * (state / 2 ** 32) ** 3)}`;
  }).join(" ");
}

function entryOf(turn: number, index: number, ids: readonly string[]): EventBody {
  const turnId = `turn-${turn}`;
  const call = {
    turnId,
    callId: `call_${turn}_${index}`,
    itemId: `item_${index}`,
    tool: index % 3 === 0 ? "read" : "exec_command",
  };
  if (index === BATCH - 1) {
    return {
      type: "evidence.noted",
      v: 1,
      noteId: `note_${turn}`,
      claim: turn % 5 === 0 ? "correction" : "conclusion",
      text: `finding ${words(turn, 30)}`,
      subject: { type: "topic", id: `topic-${turn % 1000}` },
      refs: [{ type: "file", id: `/src/${turn % 3000}.ts` }],
      tags: [`area-${turn % 20}`],
      ...(ids.length > 0 && turn % 4 === 0 ? { replyTo: ids[turn % ids.length] ?? "" } : {}),
    };
  }
  if (index % 2 === 0)
    return {
      type: "tool.intended",
      v: 1,
      ...call,
      arguments: { cmd: words(turn * BATCH + index, 12) },
      isReadOnly: false,
    };
  const output = [{ type: "text" as const, text: words(turn * BATCH + index, 60) }];
  return { type: "tool.settled", v: 1, ...call, outcome: index === 5 ? "failed" : "ok", output };
}

function indexed(ids: readonly string[]): readonly EvidenceQuery[] {
  return [
    {},
    { thread: "thread-7" },
    { turn: "turn-4200" },
    { author: "agent:other" },
    { type: "tool.*" },
    { type: "evidence.noted", claim: "correction" },
    { claim: ["goal", "conclusion"] },
    { subject: { type: "topic", id: "topic-77" } },
    { subject: { type: "tool" } },
    { ref: { type: "file", id: "/src/123.ts" } },
    { tags: ["area-3"] },
    { anyTag: ["area-3", "area-4", "failed"] },
    { replyTo: ids[3] ?? "" },
    { author: "agent:other", tags: ["failed"], thread: ["thread-7", "thread-14"] },
    { since: Date.now() - 5_000, author: "agent:embedded" },
    { order: "oldest", type: "tool.settled", tags: ["failed"] },
    { thread: "thread-8", author: "agent:other", claim: "question" },
  ];
}

function worded(): readonly EvidenceQuery[] {
  return [
    { text: "finding" },
    { text: "w0" },
    { text: "w1 w2" },
    { text: "w0 w40000" },
    { text: "w20000" },
    { text: "w49999 w12345" },
    { text: "nowhere" },
    { text: "w5", author: "agent:other" },
    { text: "finding w3", tags: ["area-3"] },
    { text: "w0", thread: "thread-9" },
  ];
}

/** Of this process: neighbours on the machine do not change it. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

async function timesOf(journal: Journal, queries: readonly EvidenceQuery[]): Promise<readonly number[]> {
  const times: number[] = [];
  for (const query of queries) {
    const own: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const startedAt = cpuMs();
      await journal.evidence.query({ ...query, limit: ASKED });
      own.push(cpuMs() - startedAt);
    }
    process.stderr.write(`${percentile(own, 95).toFixed(1)} ms  ${JSON.stringify(query)}\n`);
    times.push(...own);
  }
  return times;
}

if (import.meta.main) {
  const figures = await measureEvidence(tmpdir(), Number(process.argv[2] ?? 1_000_000));
  process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
}
