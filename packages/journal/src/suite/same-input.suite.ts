/** Whatever a store keeps its rows in: what was appended alone decides what it answers and what is hashed. */
import { createHash } from "node:crypto";
import type { EvidenceQuery, StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import { chance, noted, settled } from "./evidence.samples.ts";
import { admitted, completed, created, said } from "./journal.samples.ts";
import type { NewStore } from "./journal.suite.ts";

const STREAMS = ["a", "b", "c"];
const TURNS = 40;
const WORDS = ["alpha", "größe", "日本", "e\u0301", "\u0000", 'quoted "OR"', "😀", "x_y"];

/** Made once: the same events for every store. */
function inputs() {
  const { below, one } = chance(11);
  const beginnings = STREAMS.map((stream) => ({ stream, events: [created] }));
  const turns = Array.from({ length: TURNS }, (_, index) => {
    const turn = `t${index}`;
    const text = `${one(WORDS)} ${one(WORDS)}`;
    const note = noted({ text, tags: below(2) === 0 ? ["red"] : ["blue", "red"], claim: one(["goal", "conclusion"]) });
    const events = [
      admitted(turn),
      said(text, turn),
      settled(turn, one(["read", "bash"]), text),
      note,
      completed(turn),
    ];
    return { stream: one(STREAMS), events };
  });
  return [...beginnings, ...turns];
}

const QUERIES: readonly EvidenceQuery[] = [
  {},
  { order: "oldest", thread: "b" },
  { tags: ["blue"] },
  { type: "tool.*", subject: { type: "tool", id: "bash" } },
  { claim: "goal" },
  { text: "größe" },
  { text: "日本" },
  { since: 1_700_000_010_000, before: 1_700_000_030_000 },
];

export function sameInputSuite(newStore: NewStore): void {
  test("V11: the same input gives the same answers in two stores, and hashes that anybody makes from what is stored", async () => {
    const input = inputs();
    const filled = async (journal: Journal, setTime: (at: number) => void) => {
      for (const [index, each] of input.entries()) {
        setTime(1_700_000_000_000 + index * 1_000);
        await journal.append({ ...each, author: "agent:embedded" });
      }
      const events = await journal.read({ after: 0, limit: 1_000 });
      const names = new Map(events.map(({ id, stream, version }) => [id, `${stream} ${version}`]));
      const answers = [];
      for (const query of QUERIES) {
        const { entries } = await journal.evidence.query({ ...query, limit: 500 });
        const told = entries.map(({ id, hash: _hash, ...entry }) => ({ ...entry, id: names.get(id) }));
        answers.push({ query, told, count: await journal.evidence.count(query) });
      }
      return { events, answers };
    };
    const results = [];
    for (let store = 0; store < 2; store += 1) {
      await using own = await newStore();
      let now = 0;
      await using journal = await own.open({ now: () => now });
      results.push(await filled(journal, (at) => (now = at)));
    }
    const [one, other] = results;
    expect(one?.answers.filter(({ count }) => count === 0)).toEqual([]);
    expect(other?.answers).toEqual(one?.answers);
    for (const { events } of results) expect(events.map(({ hash }) => hash)).toEqual(hashesOf(events));
    const kept = results.map(({ events }) =>
      events.map(({ id: _id, hash: _hash, prevHash: _prev, ...event }) => event),
    );
    expect(kept[0]).toHaveLength(input.flatMap(({ events }) => events).length);
    expect(kept[1]).toEqual(kept[0]);
  });
}

/** By the documented format, with nothing of what the journal hashes with. */
function hashesOf(events: readonly StoredEvent[]): readonly string[] {
  const heads = new Map<string, string>();
  return events.map(({ id, stream, version, at, author, body }) => {
    const prevHash = heads.get(stream) ?? sha256(`heddle/1|${stream}`);
    const { type, v } = body;
    const bodyHash = sha256(sorted(body));
    const hash = sha256(sorted({ chain: 1, id, stream, version, at, author, type, v, bodyHash, prevHash }));
    heads.set(stream, hash);
    return hash;
  });
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
