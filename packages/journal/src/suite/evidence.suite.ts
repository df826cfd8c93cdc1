/** Questions to the evidence, as tests that any back-end can run. V1, V2 and V18 are about notes, and with those who make them. */
import type { EvidenceEntry, EvidenceQuery } from "@heddle/protocol";
import { expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import {
  chance,
  everyEntry,
  fillEvidence,
  isWanted,
  noted,
  randomQuery,
  settled,
  started,
} from "./evidence.samples.ts";
import { admitted, completed, created, said } from "./journal.samples.ts";
import type { NewStore } from "./journal.suite.ts";

const FULL = process.env["HEDDLE_E2E_FULL"] === "1";
const ENTRIES = 10_000;
const QUERIES = FULL ? 1_000 : 80;

export function evidenceSuite(newStore: NewStore): void {
  filters(newStore);
  questions(newStore);
  hidden(newStore);
  pages(newStore);
  subscriptions(newStore);
  chains(newStore);
  removal(newStore);
}

async function pageThrough(journal: Journal, query: EvidenceQuery, limit: number): Promise<readonly EvidenceEntry[]> {
  const found: EvidenceEntry[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await journal.evidence.query({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) });
    found.push(...page.entries);
    if (page.next === undefined) return found;
    cursor = page.next;
  }
}

const ids = (entries: readonly EvidenceEntry[]): readonly string[] => entries.map(({ id }) => id);

function filters(newStore: NewStore): void {
  test("V4: every filter, alone and combined, finds what a look at each of 10,000 entries finds, also after projections are made anew", async () => {
    await using store = await newStore();
    let at = 0;
    await using journal = await store.open({ now: () => at });
    await fillEvidence(journal, { entries: ENTRIES, setTime: (now) => (at = now) });
    const all = await everyEntry(journal);
    expect(all.length).toBeGreaterThanOrEqual(ENTRIES);
    const random = chance(3);
    let found = 0;
    for (let index = 0; index < QUERIES; index += 1) {
      const query = randomQuery(all, random);
      const wanted = all.filter((entry) => isWanted(entry, query));
      const ordered = query.order === "oldest" ? wanted : wanted.toReversed();
      const answer = await pageThrough(journal, query, 1 + random.below(400));
      expect({ query, ids: ids(answer) }).toEqual({ query, ids: ids(ordered) });
      expect({ query, count: await journal.evidence.count(query) }).toEqual({ query, count: wanted.length });
      found += wanted.length;
    }
    expect(found).toBeGreaterThan(QUERIES);
    await journal.rebuildProjections();
    expect(await everyEntry(journal)).toEqual(all);
    expect(await pageThrough(journal, { text: "alpha gamma" }, 50)).toEqual(
      all.filter((entry) => isWanted(entry, { text: "alpha gamma" })).toReversed(),
    );
  }, 120_000);

  test("an entry tells its author, thread, turn, task, envelope and hash, and is the event it stands for", async () => {
    await using store = await newStore();
    await using journal = await store.open({ now: () => 5_000 });
    const { events } = await journal.append({
      stream: "a",
      author: "agent:embedded",
      events: [created, admitted("t1"), started("t1", "hash-1"), settled("t1", "exec_command", "3 tests failed")],
    });
    const last = events.at(-1);
    expect(await journal.evidence.get(last?.id ?? "")).toEqual({
      id: last?.id,
      position: 4,
      stream: "a",
      version: 4,
      thread: "a",
      turn: "t1",
      at: 5_000,
      author: "agent:embedded",
      type: "tool.settled",
      claim: "step",
      subject: { type: "tool", id: "exec_command" },
      refs: [],
      tags: [],
      envelope: "hash-1",
      text: "call_exec_command ok\n3 tests failed",
      hash: last?.hash,
      body: last?.body,
    });
    const types = (await journal.evidence.query({ order: "oldest" })).entries.map(({ type }) => type);
    expect(types).toEqual(["turn.admitted", "tool.settled"]);
    expect(await journal.evidence.get(events[0]?.id ?? "")).toBeUndefined();
    const beginning = (prefix: string | undefined, limit = 9) =>
      journal.evidence.beginningWith(prefix ?? "", { limit });
    const ids = events.flatMap(({ id, body }) => (types.includes(body.type) ? [id] : [])).toSorted();
    expect(await beginning(last?.id.slice(0, -1))).toEqual([last?.id]);
    expect(await beginning("evt_")).toEqual(ids);
    expect(await beginning("evt_", 1)).toEqual(ids.slice(0, 1));
    expect(await beginning(events[0]?.id)).toEqual([]);
  });
}

function questions(newStore: NewStore): void {
  test("V3: an unknown field, a wrong value and a foreign cursor are errors that name it", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const refused = async (query: object): Promise<string> =>
      journal.evidence.query(query as EvidenceQuery).then(
        () => "answered",
        (error: unknown) => `${(error as { code: string }).code} ${(error as Error).message}`,
      );
    expect(await refused({ autor: "x" })).toMatch(/^usage\.invalid .*autor/);
    expect(await refused({ claim: "guess" })).toMatch(/^usage\.invalid .*claim/);
    expect(await refused({ limit: 0 })).toMatch(/^usage\.invalid .*limit/);
    expect(await refused({ cursor: "abc" })).toMatch(/^usage\.invalid .*cursor/);
    expect(await refused({ text: " -- " })).toMatch(/^usage\.invalid .*text/);
    await expect(journal.evidence.count({ autor: "x" } as EvidenceQuery)).rejects.toMatchObject({
      code: "usage.invalid",
    });
  });

  test("V7: words are words, whatever they look like to an index", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const texts = [
      'say "hello" OR not',
      "NEAR(a b)",
      "star* col:umn",
      "größe über-all",
      "日本語です",
      "party 😀🎉",
      "a\u0000b",
      "x^2 {y} (z)",
      "AND",
    ];
    await journal.append({
      stream: "a",
      author: "user:owner",
      events: [created, ...texts.map((text) => noted({ text }))],
    });
    const found = async (text: string): Promise<readonly string[]> =>
      (await journal.evidence.query({ text, order: "oldest" })).entries.map((entry) => entry.text);
    expect(await found('"hello"')).toEqual([texts[0]]);
    expect(await found('hello" OR "x')).toEqual([]);
    expect(await found("OR")).toEqual([texts[0]]);
    expect(await found("near")).toEqual([texts[1]]);
    expect(await found("NEAR(a b)")).toEqual([texts[1]]);
    expect(await found("star*")).toEqual([texts[2]]);
    expect(await found("sta*")).toEqual([]);
    expect(await found("col:umn")).toEqual([texts[2]]);
    expect(await found("GROSSE")).toEqual([]);
    expect(await found("Grösse")).toEqual([]);
    expect(await found("GRÖßE uber")).toEqual([texts[3]]);
    expect(await found("日本")).toEqual([texts[4]]);
    expect(await found("🎉")).toEqual([]);
    expect(await found("😀🎉")).toEqual([texts[5]]);
    expect(await found("a\u0000b")).toEqual([texts[1], texts[6]]);
    expect(await found("(z)")).toEqual([texts[7]]);
    expect(await found("AND")).toEqual([texts[8]]);
    expect(await found("--; DROP TABLE evidence")).toEqual([]);
  });
}

function hidden(newStore: NewStore): void {
  test("V16: a secret is in no entry, and is found by nobody", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    journal.redactor.learn(["hunter2hunter2hunter2"]);
    await journal.append({
      stream: "a",
      author: "user:owner",
      events: [created, noted({ text: "key hunter2hunter2hunter2 end" })],
    });
    const { entries } = await journal.evidence.query({ text: "key end" });
    expect(entries).toHaveLength(1);
    expect(JSON.stringify(entries)).not.toContain("hunter2");
    expect((await journal.evidence.query({ text: "hunter2hunter2hunter2" })).entries).toEqual([]);
  });

  test("V9: entries of a thread that lasts as long as its run are found only by its id", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const fleeting = { ...created, isEphemeral: true } as typeof created;
    await journal.append({ stream: "a", author: "user:owner", events: [fleeting, noted({ text: "short" })] });
    expect((await journal.evidence.query({ text: "short" })).entries).toEqual([]);
    expect(await journal.evidence.count({})).toBe(0);
    expect((await journal.evidence.query({ text: "short", thread: "a" })).entries).toHaveLength(1);
  });
}

function pages(newStore: NewStore): void {
  test("V5: pages neither repeat nor pass over an entry while four writers append, in both orders", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({
      stream: "a",
      author: "user:owner",
      events: [created, ...Array.from({ length: 300 }, (_, n) => noted({ text: `n ${n}` }))],
    });
    const before = ids(await pageThrough(journal, {}, 1000));
    let isRead = false;
    const writing = ["b", "c", "d", "e"].map(async (stream) => {
      await using writer = await store.open();
      await writer.append({ stream, author: "user:owner", events: [created] });
      for (let n = 0; n < 400 && !isRead; n += 1) {
        await writer.append({
          stream,
          author: "user:owner",
          events: [noted({ text: `${stream} ${n}` })],
          durability: "relaxed",
        });
      }
    });
    for (const order of ["newest", "oldest"] as const) {
      const seen = ids(await pageThrough(journal, { order }, 7));
      expect(new Set(seen).size).toBe(seen.length);
      expect(before.filter((id) => !seen.includes(id))).toEqual([]);
    }
    isRead = true;
    await Promise.all(writing);
    const [newest, oldest] = [
      await pageThrough(journal, {}, 1000),
      await pageThrough(journal, { order: "oldest" }, 13),
    ];
    expect(ids(oldest)).toEqual(ids(newest).toReversed());
    expect(newest).toHaveLength(await journal.evidence.count({}));
  });

  test("a query out of time, or that nobody waits for, is an error and no shorter list", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author: "user:owner", events: [created, noted({ text: "there" })] });
    await expect(journal.evidence.query({}, { timeoutMs: 0 })).rejects.toMatchObject({ code: "evidence.timeout" });
    await expect(journal.evidence.count({}, { timeoutMs: 0 })).rejects.toMatchObject({ code: "evidence.timeout" });
    await expect(journal.evidence.query({}, { signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
  });
}

function subscriptions(newStore: NewStore): void {
  test("V17: a subscription resumes after the last entry it saw, and misses none of what came meanwhile", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await using other = await store.open();
    await journal.append({ stream: "a", author: "user:owner", events: [created] });
    const note = (n: number): Promise<unknown> =>
      other.append({
        stream: "a",
        author: "user:owner",
        events: [noted({ text: `n${n}`, tags: [n % 2 === 0 ? "even" : "odd"] }), said("between")],
      });
    const take = async (count: number, after?: number): Promise<readonly EvidenceEntry[]> => {
      const control = new AbortController();
      const seen: EvidenceEntry[] = [];
      const from = after === undefined ? {} : { after };
      for await (const entry of journal.evidence.subscribe({ tags: ["even"] }, { ...from, signal: control.signal })) {
        seen.push(entry);
        if (seen.length === count) control.abort();
      }
      return seen;
    };
    for (const n of [1, 2]) await note(n);
    const [first] = await take(1, 0);
    expect(first?.text).toBe("n2");
    for (const n of [3, 4, 5, 6]) await note(n);
    const writing = (async () => {
      for (let n = 7; n <= 600; n += 1) await note(n);
    })();
    const rest = await take(299, first?.position);
    expect(rest.map(({ text }) => text)).toEqual(Array.from({ length: 299 }, (_, index) => `n${4 + 2 * index}`));
    await writing;
    const now = take(1);
    // From now on: what was there before is not told.
    const later = (async () => {
      for (let n = 700; ; n += 2) {
        await note(n);
        if ((await Promise.race([now, Promise.resolve(undefined)])) !== undefined) return;
      }
    })();
    expect((await now)[0]?.text).toMatch(/^n7\d\d$/);
    await later;
  });
}

function chains(newStore: NewStore): void {
  test("V8: replies are followed up and down through 10,000 entries, up to a bound that is told", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author: "user:owner", events: [created] });
    const chain: string[] = [];
    const DEPTH = 10_000;
    for (let depth = 0; depth <= DEPTH; depth += 1) {
      const replyTo = chain.at(-1);
      const events = [noted({ text: `depth ${depth}`, ...(replyTo === undefined ? {} : { replyTo }) })];
      const appended = await journal.append({ stream: "a", author: "user:owner", events, durability: "relaxed" });
      chain.push(appended.events[0]?.id ?? "");
    }
    const [top = "", bottom = ""] = [chain[0], chain.at(-1)];
    const up = await journal.evidence.ancestors(bottom, DEPTH);
    expect([up.isCut, ids(up.entries)]).toEqual([false, chain.slice(0, -1).toReversed()]);
    const down = await journal.evidence.descendants(top, DEPTH);
    expect([down.isCut, ids(down.entries)]).toEqual([false, chain.slice(1)]);
    const some = await journal.evidence.descendants(top, 10);
    expect([some.isCut, ids(some.entries)]).toEqual([true, chain.slice(1, 11)]);
    expect((await journal.evidence.ancestors(bottom, 10)).isCut).toBe(true);
  }, 120_000);

  test("an entry tells its newest correction, and the threads whose past it is in", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const { events } = await journal.append({
      stream: "a",
      author: "agent:one",
      events: [created, noted({ text: "wrong" })],
    });
    const id = events[1]?.id ?? "";
    expect((await journal.evidence.get(id))?.correctedBy).toBeUndefined();
    const reply = async (claim: "correction" | "question"): Promise<string> => {
      const body = noted({ text: "no", claim, replyTo: id });
      return (await journal.append({ stream: "b", author: "agent:two", events: [body] })).events[0]?.id ?? "";
    };
    await journal.append({ stream: "b", author: "user:owner", events: [created] });
    await reply("correction");
    const second = await reply("correction");
    await reply("question");
    expect((await journal.evidence.get(id))?.correctedBy).toBe(second);
    for (const [stream, version] of [
      ["fork-1", 1],
      ["fork-2", 2],
    ] as const) {
      const forkedFrom = { threadId: "a", version };
      await journal.append({
        stream,
        author: "user:owner",
        events: [{ type: "thread.created", v: 1, workspace: "/w", origin: "exec", forkedFrom }],
      });
    }
    expect(await journal.evidence.forks(id)).toEqual([{ threadId: "fork-2", version: 2 }]);
    await expect(journal.evidence.forks("evt_none")).rejects.toMatchObject({ code: "evidence.not-found" });
  });
}

function removal(newStore: NewStore): void {
  test("V10: purging a thread clears every index of it, leaves the rest, and the chain verifies", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const events = [
      created,
      admitted("t"),
      noted({ text: "zebra stripes", tags: ["animal"], refs: [{ type: "file", id: "/zoo" }] }),
      settled("t", "exec_command", "zebra ran"),
      completed("t", "tool.failed"),
    ];
    await journal.append({ stream: "gone", author: "agent:one", events });
    await journal.append({
      stream: "kept",
      author: "agent:one",
      events: [created, noted({ text: "zebra kept", tags: ["animal"] })],
    });
    expect(await journal.evidence.count({ text: "zebra" })).toBe(3);
    await journal.purge({ stream: "gone", author: "user:owner", reason: "tidy" });
    const seen = async (): Promise<unknown> => ({
      words: (await journal.evidence.query({ text: "zebra" })).entries.map(({ text }) => text),
      stripes: (await journal.evidence.query({ text: "stripes" })).entries,
      tag: await journal.evidence.count({ tags: ["animal"] }),
      ref: await journal.evidence.count({ ref: { type: "file", id: "/zoo" } }),
      thread: await journal.evidence.count({ thread: "gone" }),
      all: await journal.evidence.count({}),
    });
    const after = { words: ["zebra kept"], stripes: [], tag: 1, ref: 0, thread: 0, all: 1 };
    expect(await seen()).toEqual(after);
    await journal.rebuildProjections();
    expect(await seen()).toEqual(after);
    expect(await journal.verify()).toMatchObject({ damage: [], notices: [{ kind: "bodies-purged" }] });
  });
}
