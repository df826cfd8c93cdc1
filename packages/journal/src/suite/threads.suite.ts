/** What a list of threads shows, as tests that any back-end can run. */
import { NO_USAGE, type EventBody, type EventOf } from "@heddle/protocol";
import { expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import type { ThreadRow } from "../queries/threads.ts";
import { admitted, completed, created, entered, envelope, said } from "./journal.samples.ts";
import type { NewStore } from "./journal.suite.ts";

export function threadSuite(newStore: NewStore): void {
  lists(newStore);
  usedUpTo(newStore);
}

function lists(newStore: NewStore): void {
  test("threads are found by name, by the beginning of their id and by the thread they were forked from", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await fillThreads(journal);
    const { threads } = journal;
    const name = async (stream: string, given: string): Promise<unknown> =>
      journal.append({ stream, author: "user:owner", events: [{ type: "thread.named", v: 1, name: given }] });
    await name("b", "work");
    await name("c", "work");
    await name("b", "rest");
    await name("a", "100%_*");
    const ids = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id);
    expect(ids(await threads.named("work", { limit: 9 }))).toEqual(["c"]);
    expect(ids(await threads.named("rest", { limit: 9 }))).toEqual(["b"]);
    expect(ids(await threads.named("100%_*", { limit: 9 }))).toEqual(["a"]);
    expect(ids(await threads.named("wor", { limit: 9 }))).toEqual([]);
    // A name is no activity.
    expect(ids(await threads.list({ limit: 9 }))).toEqual(["a", "c", "b"]);
    const forkedFrom = { threadId: "a", version: 3 };
    for (const stream of ["fork-1", "fork-2", "g"]) {
      await journal.append({
        stream,
        author: "user:owner",
        events: [{ type: "thread.created", v: 1, workspace: "/w", origin: "exec", forkedFrom }],
      });
    }
    expect(ids(await threads.beginningWith("fork-", { limit: 9 }))).toEqual(["fork-1", "fork-2"]);
    expect(ids(await threads.beginningWith("fork-", { limit: 1 }))).toEqual(["fork-1"]);
    expect(ids(await threads.beginningWith("%", { limit: 9 }))).toEqual([]);
    expect(ids(await threads.forksOf("a", { limit: 9 }))).toEqual(["g", "fork-2", "fork-1"]);
    expect(await threads.get("fork-1")).toMatchObject({ forkedFrom, turnCount: 0, lastTurnStatus: undefined });
    const before = await answers(journal);
    await journal.rebuildProjections();
    expect(await answers(journal)).toEqual(before);
  });

  test("a thread is listed in the folder it moved to, and those to be deleted with their run are known until they are", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const { threads } = journal;
    const ids = (rows: readonly { readonly id: string }[]): string[] => rows.map(({ id }) => id);
    const begun = { type: "thread.created", v: 1, workspace: "/here", origin: "exec" } as const;
    const fleeting = { ...begun, isEphemeral: true } as const;
    await journal.append({ stream: "a", author: "user:owner", events: [begun, admitted("a1"), completed("a1")] });
    await journal.append({ stream: "b", author: "user:owner", events: [fleeting, admitted("b1"), completed("b1")] });
    await journal.append({ stream: "c", author: "user:owner", events: [fleeting] });
    const moved = { type: "thread.moved" as const, v: 1 as const, workspace: "/elsewhere" };
    await journal.append({ stream: "a", author: "user:owner", events: [moved, admitted("a2")] });
    const seen = async (): Promise<unknown> => ({
      there: ids(await threads.list({ workspace: "/elsewhere", limit: 9 })),
      before: ids(await threads.list({ workspace: begun.workspace, limit: 9 })),
      fleeting: ids(await threads.ephemeral()),
    });
    const now = { there: ["a"], before: ["c", "b"], fleeting: ["b", "c"] };
    expect(await seen()).toEqual(now);
    await journal.rebuildProjections();
    expect(await seen()).toEqual(now);
    await journal.purge({ stream: "b", author: "user:owner", reason: "ephemeral" });
    expect(await seen()).toEqual({ ...now, before: ["c"], fleeting: ["c"] });
  });

  settingsAndQueue(newStore);
  envelopes(newStore);
  pages(newStore);
  providers(newStore);

  test.each([
    ["a short prompt", "fix it", "fix it"],
    ["lines and blanks", "  fix\n\n the\ttest   now \n", "fix the test now"],
    ["what a terminal would obey", "a\u001b[2Jb\u202ec", "a\\x1b[2Jb\\u{202e}c"],
    ["a long prompt", "x".repeat(5000), `${"x".repeat(119)}…`],
    ["a pair of code units at the cut", `${"x".repeat(118)}😀 and more words`, `${"x".repeat(118)}…`],
    ["nothing but blanks", " \n ", undefined],
  ])("the preview of a thread is made from %s", async (_name, text, preview) => {
    await using store = await newStore();
    await using journal = await store.open();
    const first = { ...admitted("t"), input: [{ type: "text" as const, text }] };
    await journal.append({ stream: "a", author: "user:owner", events: [created, first] });
    expect((await journal.threads.get("a"))?.preview).toBe(preview);
    await journal.append({ stream: "a", author: "user:owner", events: [completed("t"), admitted("t2")] });
    expect((await journal.threads.get("a"))?.preview).toBe(preview ?? "do t2");
  });
}

function usedUpTo(newStore: NewStore): void {
  test("14.5: what a thread had used at any version is known without its turns", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const end = (turnId: string, inputTokens: number): EventBody => ({
      ...completed(turnId),
      usage: { ...NO_USAGE, inputTokens, outputTokens: 1 },
      durationMs: 10,
    });
    const events = [created, admitted("t1"), end("t1", 3), admitted("t2"), end("t2", 4), admitted("t3")];
    await journal.append({ stream: "a", author: "user:owner", events });
    const known = async (): Promise<unknown> =>
      Promise.all(
        [0, 2, 3, 4, 5, 6, 99].map(async (version) => {
          const { usage, durationMs } = await journal.threads.usedUpTo("a", version);
          return [usage.inputTokens, usage.outputTokens, durationMs];
        }),
      );
    const none = [0, 0, 0];
    const [one, two] = [
      [3, 1, 10],
      [7, 2, 20],
    ];
    expect(await known()).toEqual([none, none, one, one, two, two, two]);
    expect((await journal.threads.usedUpTo("b", 99)).usage).toEqual(NO_USAGE);
    await journal.rebuildProjections();
    expect(await known()).toEqual([none, none, one, one, two, two, two]);
  });
}

function settingsAndQueue(newStore: NewStore): void {
  test("settings merge key by key, waiting input is listed in order, and both rebuild equal", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const { type: _type, holder: _holder, ...waiting } = admitted("q1");
    const queued = (turnId: string) => ({ ...waiting, type: "turn.queued" as const, turnId });
    const settings = (changes: Record<string, unknown>) => ({
      type: "thread.settings-changed" as const,
      v: 1 as const,
      changes,
    });
    const failure = { code: "turn.interrupted", message: "taken back" };
    await journal.append({
      stream: "a",
      author: "user:owner",
      events: [created, settings({ model: "m", effort: "low" }), queued("q1"), queued("q2"), queued("q3")],
    });
    await journal.append({
      stream: "a",
      author: "user:owner",
      events: [
        settings({ effort: null, runner: { a: 1 } }),
        admitted("q1"),
        { type: "turn.dequeued", v: 1, turnId: "q2", failure },
      ],
    });
    await journal.append({ stream: "b", author: "user:owner", events: [created, queued("q4")] });
    const seen = async () => ({
      settings: (await journal.threads.get("a"))?.settings,
      ofA: (await journal.threads.queued("a")).map(({ turnId, queuedVersion }) => [turnId, queuedVersion]),
      all: (await journal.threads.queued()).map(({ turnId }) => turnId),
    });
    const now = { settings: { model: "m", runner: { a: 1 } }, ofA: [["q3", 5]], all: ["q3", "q4"] };
    expect(await seen()).toEqual(now);
    await journal.rebuildProjections();
    expect(await seen()).toEqual(now);
    await journal.purge({ stream: "b", author: "user:owner", reason: "test" });
    expect((await journal.threads.queued()).map(({ turnId }) => turnId)).toEqual(["q3"]);
  });
}

function envelopes(newStore: NewStore): void {
  const hop = (to: string, channel: "model" | "user") => ({ to, channel, reason: "next", guards: [] });
  const left = (id: string, cause: EventOf<"envelope.left">["cause"]): EventBody => ({
    type: "envelope.left",
    v: 1,
    cause,
    envelopeHash: `#${id}`,
    calls: 0,
  });
  const call = { turnId: "t", callId: "c", itemId: "i", tool: "write" };
  const intended: EventBody = { type: "tool.intended", v: 1, ...call, arguments: {}, isReadOnly: false };
  const settled: EventBody = { type: "tool.settled", v: 1, ...call, outcome: "ok", output: [], bytesWritten: 7 };

  test("the envelope of a thread, its ceiling, its calls and the way back are known, and rebuild equal", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const put = (...events: readonly EventBody[]) => journal.append({ stream: "a", author: "system", events });
    const row = () => journal.threads.envelope("a");
    expect(await row()).toBeUndefined();
    const ceiling = envelope("full");
    await put(created, admitted("t"), entered("explore", { ceiling, duringTurn: "t" }), intended, settled, intended);
    const explore = { envelope: envelope("explore"), hash: "#explore", ceiling, stack: [], cause: "start", calls: 2 };
    expect(await row()).toMatchObject({ ...explore, bytesWritten: 7, isLeft: false, enteredVersion: 3 });
    const byModel = { cause: "hop", depth: 1, duringTurn: "t", hop: hop("edit", "model") } as const;
    await put(left("explore", "hop"), entered("edit", byModel), intended);
    await put(left("edit", "hop"), entered("test", { ...byModel, depth: 2, hop: hop("test", "model") }));
    const step = { id: "explore", hash: "#explore", channel: "model" };
    const steps = [step, { ...step, id: "edit", hash: "#edit" }];
    const modelHops = { turnId: "t", count: 2 };
    expect(await row()).toMatchObject({ hash: "#test", ceiling, stack: steps, calls: 0, bytesWritten: 0, modelHops });
    const before = await row();
    await journal.rebuildProjections();
    expect(await row()).toEqual(before);
    await put(left("test", "back"), entered("edit", { cause: "back", depth: 1 }));
    expect(await row()).toMatchObject({ hash: "#edit", stack: [step], modelHops: undefined });
    await put(left("edit", "settings"), entered("plan", { cause: "settings", duringTurn: "u" }));
    expect(await row()).toMatchObject({ hash: "#plan", ceiling, stack: [], modelHops: { turnId: "u", count: 0 } });
    await put(left("plan", "end"));
    expect(await row()).toMatchObject({ hash: "#plan", isLeft: true });
    await put(completed("t"));
    await journal.purge({ stream: "a", author: "user:owner", reason: "test" });
    expect(await row()).toBeUndefined();
  });

  test("the way back is bounded: the oldest step is forgotten", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author: "system", events: [created, entered("e0")] });
    for (let n = 1; n <= 20; n += 1) {
      const events = [
        left(`e${n - 1}`, "hop"),
        entered(`e${n}`, { cause: "hop", depth: n, hop: hop(`e${n}`, "user") }),
      ];
      await journal.append({ stream: "a", author: "system", events });
    }
    const { stack = [] } = (await journal.threads.envelope("a")) ?? {};
    expect([stack.length, stack[0]?.id, stack.at(-1)?.id]).toEqual([16, "e4", "e19"]);
  });
}

function providers(newStore: NewStore): void {
  test("threads are listed by the provider of their last turn or the one named since, forks by their parent's, and rebuild so", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const put = (stream: string, ...events: readonly EventBody[]) =>
      journal.append({ stream, author: "user:owner", events });
    const turn = (id: string, provider: string): EventBody => {
      const body = admitted(id);
      return { ...body, settings: { ...body.settings, provider } };
    };
    const named = (provider: string | null): EventBody => ({
      type: "thread.settings-changed",
      v: 1,
      changes: { model_provider: provider },
    });
    await put("a", created, turn("a1", "one"));
    await put("b", created, turn("b1", "one"), completed("b1"), turn("b2", "two"), completed("b2"), named(null));
    await put("c", created, turn("c1", "one"), completed("c1"), named("two"));
    const forkedFrom = { threadId: "c", version: 2 };
    await put("d", { type: "thread.created", v: 1, workspace: "/w", origin: "exec", forkedFrom });
    const base = { sortBy: "createdAt", direction: "asc", limit: 10, isArchived: false } as const;
    const of = async (providers: readonly string[]): Promise<string[]> =>
      (await journal.threads.page({ ...base, providers })).map(({ id }) => id);
    for (const look of [async () => undefined, () => journal.rebuildProjections()]) {
      await look();
      expect(await of(["one"])).toEqual(["a"]);
      expect(await of(["two"])).toEqual(["b", "c", "d"]);
      expect(await of(["one", "two"])).toEqual(["a", "b", "c", "d"]);
      expect(await of(["three"])).toEqual([]);
    }
  });
}

function pages(newStore: NewStore): void {
  test("threads come in pages, each beginning where the last one ended, sorted and filtered", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const ids = Array.from({ length: 25 }, (_, index) => `t${String(index).padStart(2, "0")}`);
    for (const [index, stream] of ids.entries()) {
      const origin = index % 5 === 0 ? "exec" : "door:x";
      const about = { ...created, origin, workspace: index % 2 === 0 ? "/even" : "/odd" };
      await journal.append({ stream, author: "user:owner", events: [about, admitted(`${stream}-turn`)] });
    }
    await journal.append({ stream: "silent", author: "user:owner", events: [created] });
    await journal.append({
      stream: "t03",
      author: "user:owner",
      events: [{ type: "thread.named", v: 1, name: "50%_Off" }],
    });
    await journal.append({
      stream: "t04",
      author: "user:owner",
      events: [{ type: "thread.archived", v: 1, isArchived: true }],
    });
    const base = { sortBy: "createdAt", direction: "asc", limit: 10, isArchived: false } as const;
    const idsOf = (rows: readonly ThreadRow[]): string[] => rows.map(({ id }) => id);
    for (const direction of ["asc", "desc"] as const) {
      const seen: string[] = [];
      for (let from: ThreadRow | undefined; ;) {
        const begin = from === undefined ? {} : { from: { thread: from, isIncluded: false } };
        const rows = await journal.threads.page({ ...base, direction, ...begin });
        seen.push(...idsOf(rows));
        from = rows.at(-1);
        if (rows.length < base.limit) break;
      }
      const all = ids.filter((id) => id !== "t04");
      expect(seen).toEqual(direction === "asc" ? all : all.toReversed());
    }
    const page = async (query: object): Promise<string[]> => idsOf(await journal.threads.page({ ...base, ...query }));
    expect(await page({ isArchived: true })).toEqual(["t04"]);
    expect(await page({ text: "50%_off" })).toEqual(["t03"]);
    expect(await page({ text: "50%_OFF" })).toEqual(["t03"]);
    expect(await page({ text: "0%X" })).toEqual([]);
    expect(await page({ text: "x".repeat(100_000) })).toEqual([]);
    expect(await page({ origin: { prefix: "door:", begins: false } })).toEqual(["t00", "t05", "t10", "t15", "t20"]);
    expect(await page({ workspaces: ["/odd"], excludedIds: ["t01"], limit: 2 })).toEqual(["t03", "t05"]);
    expect(await page({ workspaces: [] })).toEqual([]);
    const thread = await journal.threads.get("t20");
    expect(await page({ from: { thread, isIncluded: true }, limit: 2 })).toEqual(["t20", "t21"]);
  });

  test("what was said is found in steps, newest first, as it stands in the record", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const named = (name: string) => ({ type: "thread.named" as const, v: 1 as const, name });
    await journal.append({ stream: "a", author: "user:owner", events: [created, named('say "100%"')] });
    await journal.append({ stream: "b", author: "user:owner", events: [created, named("SAY nothing")] });
    const look = async (text: string, below: number, events: number) => {
      const { found, lowest } = await journal.threads.mentions({ text, below, events });
      return [found.map(({ stream }) => stream), lowest];
    };
    expect(await look("say", 5, 10)).toEqual([["b", "a"], 1]);
    expect(await look("say", 5, 2)).toEqual([["b"], 3]);
    expect(await look("say", 3, 2)).toEqual([["a"], 1]);
    expect(await look('say "100%"', 5, 10)).toEqual([["a"], 1]);
    expect(await look("100_", 5, 10)).toEqual([[], 1]);
    expect(await look("say", 1, 10)).toEqual([[], 0]);
  });
}

export async function fillThreads(journal: Journal): Promise<void> {
  const author = "system";
  await journal.append({ stream: "a", author, events: [created, admitted("a1"), completed("a1", "provider.cut")] });
  await journal.append({ stream: "b", author, events: [created] });
  const third = {
    ...created,
    type: "thread.created",
    v: 1,
    workspace: "/other",
    origin: "exec",
    title: "third",
  } as const;
  await journal.append({ stream: "c", author, events: [third, admitted("c1")] });
  await journal.append({ stream: "a", author, events: [admitted("a2"), said("x"), completed("a2")] });
  await journal.append({ stream: "not-a-thread", author, events: [said("x")] });
}

export async function answers(journal: Journal): Promise<{ threads: unknown[]; turns: unknown[]; open: unknown[] }> {
  const threads = await journal.threads.list({ limit: 100 });
  const turns = await Promise.all(threads.map((thread) => journal.threads.turns(thread.id)));
  return { threads: [...threads], turns: turns.flat(), open: [...(await journal.threads.openTurns())] };
}
