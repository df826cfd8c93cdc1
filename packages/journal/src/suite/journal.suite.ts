/**
 * The ten promises of the journal as tests that any back-end can run. The promises that need other
 * processes (6, 8, 9) are in `processes.suite.ts`. A back-end passes both, and says how it is opened.
 */
import { NO_USAGE, type EventBody, type StoredEvent } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import { admitted, completed, created, said } from "./journal.samples.ts";
import { evidenceSuite } from "./evidence.suite.ts";
import { leaseSuite } from "./leases.suite.ts";
import { markSuite } from "./marks.suite.ts";
import { notificationSuite } from "./notifications.suite.ts";
import { sameInputSuite } from "./same-input.suite.ts";
import { taskSuite } from "./tasks.suite.ts";
import { answers, fillThreads, threadSuite } from "./threads.suite.ts";
import { usageSuite } from "./usage.suite.ts";

/** One store, new for each test. */
export interface SuiteStore extends AsyncDisposable {
  /** Each call is a connection of its own to the same store. */
  open(options?: { readonly now?: () => number; readonly leaseMs?: number }): Promise<Journal>;
  /** By which a child process finds the store, with the module whose `openAt` opens it. */
  readonly address: string;
  readonly backend: string;
}

export type NewStore = () => Promise<SuiteStore>;

/** What a module says of a back-end. */
export interface Backend {
  readonly newStore: NewStore;
  /** For a child process. */
  readonly openAt: (address: string) => Promise<Journal>;
}

export const ENDLESS = new AbortController().signal;

export function journalSuite(name: string, { newStore }: Backend): void {
  describe(name, () => {
    describe("1. an event is visible only when it and its projections are committed", () => visibility(newStore));
    describe("2. versions are dense, and an append may expect one", () => versions(newStore));
    describe("3. a key makes an append happen once", () => keys(newStore));
    describe("4. a stored event never changes", () => permanence(newStore));
    describe("5. a reader misses nothing and sees nothing twice", () => cursors(newStore));
    describe("7. projections rebuild equal", () => projections(newStore));
    describe("7. threads", () => threadSuite(newStore));
    describe("7. marks", () => markSuite(newStore));
    describe("7. tasks", () => taskSuite(newStore));
    describe("7. notifications", () => notificationSuite(newStore));
    describe("7. usage", () => usageSuite(newStore));
    describe("7. evidence", () => evidenceSuite(newStore));
    describe("7. the same input", () => sameInputSuite(newStore));
    describe("10. a lost lease is refused", () => leaseSuite(newStore));
  });
}

function visibility(newStore: NewStore): void {
  test("signed heads of a stream are told at every connection, oldest first", async () => {
    await using store = await newStore();
    await using writer = await store.open();
    const append = (events: readonly EventBody[]) => writer.append({ stream: "a", author: "user:owner", events });
    const stored = [await append([created, admitted("t1")]), await append([completed("t1")])];
    const heads = stored.map(({ events }) => events.at(-1)).map((event) => [event?.version, event?.hash]);
    expect((await writer.checkpoints("a")).map(({ version, hash }) => [version, hash])).toEqual(heads);
    await using reader = await store.open();
    expect((await reader.checkpoints("a")).map(({ version, hash }) => [version, hash])).toEqual(heads);
    expect(await reader.checkpoints("b")).toEqual([]);
  });

  test("an event and its projections become visible together, to every reader", async () => {
    await using store = await newStore();
    await using writer = await store.open();
    await using reader = await store.open();
    expect(await reader.threads.get("a")).toBeUndefined();
    await writer.append({ stream: "a", author: "user:owner", events: [created, admitted("t1")] });
    expect((await reader.read({ stream: "a", after: 0 })).map((event) => event.body.type)).toEqual([
      "thread.created",
      "turn.admitted",
    ]);
    expect(await reader.threads.get("a")).toMatchObject({ id: "a", turnCount: 1 });
    expect(await reader.threads.openTurns()).toMatchObject([{ id: "t1", threadId: "a", status: "open" }]);
  });

  test("an append that is refused leaves neither event nor projection", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const refused = journal.append({
      stream: "a",
      author: "user:owner",
      events: [created, admitted("t")],
      expectedVersion: 3,
    });
    await expect(refused).rejects.toMatchObject({ code: "store.version-conflict" });
    expect(await journal.read({ after: 0 })).toEqual([]);
    expect(await journal.threads.list({ limit: 10 })).toEqual([]);
    expect(await journal.threads.turn("t")).toBeUndefined();
  });
}

function versions(newStore: NewStore): void {
  test("versions are dense per stream whoever appends, and positions order the whole journal", async () => {
    await using store = await newStore();
    await using first = await store.open();
    await using second = await store.open();
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        (index % 2 === 0 ? first : second).append({
          stream: index % 4 < 2 ? "a" : "b",
          author: "system",
          events: [said(`${index}`), said(`${index}+`)],
        }),
      ),
    );
    for (const stream of ["a", "b"]) {
      const versions = (await first.read({ stream, after: 0 })).map((event) => event.version);
      expect(versions).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
      expect(await second.version(stream)).toBe(40);
    }
    const positions = (await first.read({ after: 0 })).map((event) => event.position);
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    expect(new Set(positions).size).toBe(80);
    expect(await first.version("nobody")).toBe(0);
  });

  test("an append that expects another version is refused, and says which one it is", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author: "user:owner", events: [created], expectedVersion: 0 });
    await journal.append({ stream: "a", author: "user:owner", events: [said("x")], expectedVersion: 1 });
    await expect(
      journal.append({ stream: "a", author: "user:owner", events: [said("y")], expectedVersion: 1 }),
    ).rejects.toMatchObject({ code: "store.version-conflict", details: { expected: 1, actual: 2 } });
    expect(await journal.version("a")).toBe(2);
  });

  test("appends of one process are stored in the order of their calls", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const texts = Array.from({ length: 50 }, (_, index) => `${index}`);
    await Promise.all(texts.map((text) => journal.append({ stream: "a", author: "system", events: [said(text)] })));
    expect((await journal.read({ stream: "a", after: 0 })).map(textOf)).toEqual(texts);
  });
}

function keys(newStore: NewStore): void {
  test("the same key with the same content returns the first result and writes nothing", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await using other = await store.open();
    const append = {
      stream: "a",
      author: "user:owner",
      events: [created, said("x")],
      key: "k",
      expectedVersion: 0,
    } as const;
    const first = await journal.append(append);
    const again = await other.append(append);
    expect(first.isRepeat).toBe(false);
    expect(again).toEqual({ events: first.events, isRepeat: true });
    // 14.2: so it is when another user says the same; who said it first stays on record.
    expect(await other.append({ ...append, author: "user:ann" })).toEqual(again);
    expect(await journal.version("a")).toBe(2);
  });

  test("of many appends with one key exactly one writes", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await using other = await store.open();
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        (index % 2 === 0 ? journal : other).append({
          stream: "a",
          author: "user:owner",
          events: [said("x")],
          key: "k",
        }),
      ),
    );
    expect(results.filter((result) => !result.isRepeat)).toHaveLength(1);
    expect(new Set(results.map((result) => result.events[0]?.id)).size).toBe(1);
    expect(await journal.version("a")).toBe(1);
  });

  test.each([
    ["other content", { stream: "a", author: "user:owner", events: [said("y")] }],
    ["another stream", { stream: "b", author: "user:owner", events: [said("x")] }],
    ["another author", { stream: "a", author: "system", events: [said("x")] }],
  ] as const)("the same key with %s is a conflict", async (_name, append) => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author: "user:owner", events: [said("x")], key: "k" });
    await expect(journal.append({ ...append, key: "k" })).rejects.toMatchObject({ code: "store.id-conflict" });
    expect(await journal.read({ after: 0 })).toHaveLength(1);
  });
}

function permanence(newStore: NewStore): void {
  test("what was read once reads the same ever after, and equals what append returned", async () => {
    await using store = await newStore();
    const odd = said('nul \u0000, lone \ud800, quote ", é, 漢, 😀');
    let returned: readonly StoredEvent[];
    {
      await using journal = await store.open();
      ({ events: returned } = await journal.append({
        stream: "a b/ç",
        author: "agent:x",
        events: [created, said("x")],
      }));
      await journal.append({ stream: "a b/ç", author: "policy:p", events: [odd] });
    }
    await using journal = await store.open();
    const events = await journal.read({ stream: "a b/ç", after: 0 });
    expect(events.slice(0, 2)).toEqual(returned);
    expect(events.map((event) => event.author)).toEqual(["agent:x", "agent:x", "policy:p"]);
    expect(events.at(2)?.body).toEqual(said('nul \u0000, lone \ufffd, quote ", é, 漢, 😀'));
    expect(await journal.verify()).toMatchObject({ events: 3, streams: 1, damage: [] });
  });

  test("time never runs backwards within a stream, whatever the clock does", async () => {
    await using store = await newStore();
    const clock = [5000, 1000, 9000, 2_147_483_648_000, 0];
    await using journal = await store.open({ now: () => clock.shift() ?? 0 });
    for (const text of ["a", "b", "c", "d", "e"]) {
      await journal.append({ stream: "s", author: "system", events: [said(text)] });
    }
    const events = await journal.read({ stream: "s", after: 0 });
    expect(events.map((event) => event.at)).toEqual([5000, 5000, 9000, 2_147_483_648_000, 2_147_483_648_000]);
    expect(events.map(textOf)).toEqual(["a", "b", "c", "d", "e"]);
  });
}

function cursors(newStore: NewStore): void {
  test("a reader from any cursor gets the rest once, in order, and then what comes", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await using other = await store.open();
    const append = (text: string): Promise<unknown> =>
      other.append({ stream: "a", author: "system", events: [said(text), said(`${text}'`)] });
    await append("0");
    await other.append({ stream: "b", author: "system", events: [said("elsewhere")] });
    const ofStream = collect(journal.tail({ stream: "a", after: 1, signal: ENDLESS }), 9);
    const ofAll = collect(journal.tail({ after: 0, signal: ENDLESS }), 11);
    for (const text of ["1", "2", "3", "4"]) await append(text);
    expect((await ofStream).map((event) => event.version)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect((await ofAll).map((event) => event.position)).toEqual(
      (await journal.read({ after: 0 })).map((e) => e.position),
    );
  });

  test("a reader that waits is woken by its own process and by others", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await using other = await store.open();
    const events = journal.tail({ stream: "a", after: 0, signal: ENDLESS })[Symbol.asyncIterator]();
    for (const [index, writer] of [journal, other, journal, other].entries()) {
      const next = events.next();
      await writer.append({ stream: "a", author: "system", events: [said(`${index}`)] });
      expect(await next).toMatchObject({ value: { version: index + 1 } });
    }
  });

  test("a reader that stops in the middle disturbs no other", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const slow = journal.tail({ after: 0, signal: ENDLESS })[Symbol.asyncIterator]();
    const first = slow.next();
    const fast = collect(journal.tail({ after: 0, signal: ENDLESS }), 600);
    for (let index = 0; index < 600; index += 1) {
      await journal.append({ stream: "a", author: "system", events: [said(`${index}`)], durability: "relaxed" });
    }
    expect(await fast).toHaveLength(600);
    expect(await first).toMatchObject({ value: { version: 1 } });
    expect(await slow.next()).toMatchObject({ value: { version: 2 } });
  });

  test("a reader ends when its signal aborts and when the journal is closed", async () => {
    await using store = await newStore();
    const journal = await store.open();
    const abort = new AbortController();
    const aborted = collect(journal.tail({ after: 0, signal: abort.signal }), 1);
    const closed = collect(journal.tail({ after: 0, signal: ENDLESS }), 1);
    abort.abort();
    expect(await aborted).toEqual([]);
    await journal[Symbol.asyncDispose]();
    expect(await closed).toEqual([]);
  });

  test("a limit cuts a page, and the next page begins after it", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author: "system", events: ["1", "2", "3"].map((text) => said(text)) });
    const page = await journal.read({ stream: "a", after: 0, limit: 2 });
    expect(page.map(textOf)).toEqual(["1", "2"]);
    expect((await journal.read({ stream: "a", after: 2, limit: 2 })).map(textOf)).toEqual(["3"]);
  });
}

function projections(newStore: NewStore): void {
  test("projections rebuilt from events come out equal", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await fillThreads(journal);
    const before = await answers(journal);
    expect(before.threads).toHaveLength(3);
    await journal.rebuildProjections();
    expect(await answers(journal)).toEqual(before);
    await journal.append({ stream: "c", author: "system", events: [completed("c1")] });
    expect(await journal.threads.openTurns()).toEqual([]);
  });

  test("projections answer by activity, workspace, thread and state", async () => {
    await using store = await newStore();
    await using journal = await store.open({ now: () => 7 });
    await fillThreads(journal);
    const { threads } = journal;
    expect((await threads.list({ limit: 10 })).map((thread) => thread.id)).toEqual(["a", "c", "b"]);
    expect((await threads.list({ limit: 1 })).map((thread) => thread.id)).toEqual(["a"]);
    expect((await threads.list({ workspace: "/other", limit: 10 })).map((thread) => thread.id)).toEqual(["c"]);
    expect(await threads.get("c")).toEqual({
      id: "c",
      workspace: "/other",
      origin: "exec",
      title: "third",
      name: undefined,
      preview: "do c1",
      forkedFrom: undefined,
      createdAt: 7,
      updatedAt: 7,
      turnCount: 1,
      isEphemeral: false,
      isArchived: false,
      settings: {},
      logEntries: 2,
      usage: NO_USAGE,
      lastTurnStatus: "open",
    });
    expect(await threads.turns("a")).toEqual([
      { id: "a1", threadId: "a", status: "failed", admittedVersion: 2, endedVersion: 3, failureCode: "provider.cut" },
      { id: "a2", threadId: "a", status: "completed", admittedVersion: 4, endedVersion: 6, failureCode: undefined },
    ]);
    expect(await threads.turn("c1")).toMatchObject({ status: "open", admittedVersion: 2 });
  });

  test("only the first terminal event of a turn counts", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author: "system", events: [created, admitted("t"), completed("t", "x")] });
    await journal.append({ stream: "a", author: "system", events: [completed("t")] });
    expect(await journal.threads.turn("t")).toMatchObject({ status: "failed", failureCode: "x" });
    expect(await journal.threads.get("a")).toMatchObject({ lastTurnStatus: "failed" });
  });
}

export async function collect(events: AsyncIterable<StoredEvent>, count: number): Promise<StoredEvent[]> {
  const collected: StoredEvent[] = [];
  for await (const event of events) {
    collected.push(event);
    if (collected.length === count) break;
  }
  return collected;
}

function textOf(event: StoredEvent): string {
  return event.body.type === "item.completed" && event.body.item.type === "agentMessage" ? event.body.item.text : "";
}
