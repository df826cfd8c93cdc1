import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournal, verifyExport, type Journal } from "@heddle/journal";
import { NO_USAGE, type EventBody, type StoredEvent, type TurnSettings } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { lineage, readHistory } from "./history.ts";
import { readStoredSettings } from "../settings/stored.ts";
import { readLastSettings } from "./past.ts";
import { archiveThread, exportThread, findThread, forkThread, nameThread, purgeThread } from "./threads.ts";

const author = "user:owner";
const settings: TurnSettings = {
  provider: "p",
  model: "m",
  sandboxMode: "read-only",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
};
const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };

const created = (workspace = "/w"): EventBody => ({ type: "thread.created", v: 1, workspace, origin: "test" });
const admitted = (turnId: string, model = "m"): EventBody => ({
  type: "turn.admitted",
  v: 1,
  turnId,
  input: [{ type: "text", text: `do ${turnId}` }],
  settings: { ...settings, model },
  holder,
});
const ended = (turnId: string): EventBody => ({
  type: "turn.completed",
  v: 1,
  turnId,
  status: "completed",
  usage: NO_USAGE,
  durationMs: 1,
});

interface Record extends AsyncDisposable {
  readonly journal: Journal;
  thread(id: string, turns?: readonly string[], workspace?: string): Promise<string>;
  add(id: string, ...events: EventBody[]): Promise<void>;
}

async function openRecord(): Promise<Record> {
  const folder = await mkdtemp(join(tmpdir(), "heddle-threads-"));
  const journal = await openJournal({ home: join(folder, "home") });
  const add = async (stream: string, ...events: EventBody[]): Promise<void> => {
    await journal.append({ stream, author, events });
  };
  return {
    journal,
    add,
    async thread(id, turns = [], workspace = "/w") {
      await add(id, created(workspace), ...turns.flatMap((turn) => [admitted(turn), ended(turn)]));
      return id;
    },
    async [Symbol.asyncDispose]() {
      await journal[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const shown = (events: readonly StoredEvent[]): string[] =>
  events.map(({ stream, version, body }) => `${stream}:${version} ${body.type}`);

const A = "01890000-0000-7000-8000-00000000000a";
const B = "01890000-0000-7000-8000-00000000000b";
const C = "01891111-0000-7000-8000-00000000000c";

describe("findThread", () => {
  test("takes an exact id, a unique beginning of eight characters and an exact name", async () => {
    await using r = await openRecord();
    for (const id of [A, B, C]) await r.thread(id);
    await nameThread(r.journal, { by: "user:owner", threadId: B, name: "  the bug  " });
    const found = async (selector: string): Promise<string> => (await findThread(r.journal, selector)).id;
    expect(await found(A)).toBe(A);
    expect(await found("01891111")).toBe(C);
    expect(await found("01891111-0000")).toBe(C);
    expect(await found(C.toUpperCase())).toBe(C);
    expect(await found("the bug")).toBe(B);
  });

  test("lists the candidates when more than one fits, by beginning, by name or by both", async () => {
    await using r = await openRecord();
    for (const id of [A, B, C]) await r.thread(id, [`turn ${id}`]);
    await expect(findThread(r.journal, "01890000")).rejects.toMatchObject({
      code: "thread.ambiguous",
      message: expect.stringContaining(`do turn ${A}`),
      details: { candidates: `${A} ${B}` },
    });
    for (const threadId of [A, C]) await nameThread(r.journal, { by: "user:owner", threadId, name: "twice" });
    await expect(findThread(r.journal, "twice")).rejects.toMatchObject({ details: { candidates: `${C} ${A}` } });
    await nameThread(r.journal, { by: "user:owner", threadId: A, name: "01891111" });
    await expect(findThread(r.journal, "01891111")).rejects.toMatchObject({ details: { candidates: `${A} ${C}` } });
  });

  test("finds the last active thread of a workspace, or of all", async () => {
    await using r = await openRecord();
    await r.thread(A, ["1"]);
    await r.thread(B, ["2"], "/other");
    await r.thread(C, ["3"]);
    await r.add(A, admitted("4"), ended("4"));
    await nameThread(r.journal, { by: "user:owner", threadId: C, name: "no activity" });
    const last = async (selector: { workspace: string } | { all: true }): Promise<string> =>
      (await findThread(r.journal, { last: true, ...selector })).id;
    expect([await last({ workspace: "/w" }), await last({ workspace: "/other" }), await last({ all: true })]).toEqual([
      A,
      B,
      A,
    ]);
    await expect(last({ workspace: "/w/inner" })).rejects.toMatchObject({
      code: "thread.not-found",
      message: expect.stringContaining("/w/inner"),
    });
  });

  test.each([
    ["an unknown id", "01899999-0000-7000-8000-000000000000", "heddle threads list"],
    ["an unknown name", "nobody", "heddle threads list"],
    ["a beginning that is too short", "0189111", "at least 8 characters"],
    ["text that would move a cursor", "\u001B[2J", "\\x1b[2J"],
    ["nothing", "", "heddle threads list"],
  ])("says what to do about %s", async (_name, wanted, hint) => {
    await using r = await openRecord();
    await r.thread(C);
    await expect(findThread(r.journal, wanted)).rejects.toMatchObject({
      code: "thread.not-found",
      message: expect.stringContaining(hint),
    });
    await r.journal.purge({ stream: C, author, reason: "" });
    await expect(findThread(r.journal, { last: true, all: true })).rejects.toMatchObject({ code: "thread.not-found" });
  });

  test("never finds a deleted thread, and says that it was deleted", async () => {
    await using r = await openRecord();
    await r.thread(A, ["1"]);
    await nameThread(r.journal, { by: "user:owner", threadId: A, name: "gone" });
    await purgeThread(r.journal, { by: "user:owner", threadId: A });
    await expect(findThread(r.journal, A)).rejects.toMatchObject({ message: expect.stringContaining("was deleted") });
    for (const selector of ["01890000", "gone", { last: true, all: true }, { last: true, workspace: "/w" }] as const) {
      await expect(findThread(r.journal, selector)).rejects.toMatchObject({ code: "thread.not-found" });
    }
  });
});

describe("names", () => {
  test.each([
    ["nothing", " \n "],
    ["two lines", "a\nb"],
    ["a hidden character", "a\u200Bb"],
    ["too much", "x".repeat(201)],
  ])("of %s are refused", async (_name, name) => {
    await using r = await openRecord();
    await r.thread(A);
    await expect(nameThread(r.journal, { by: "user:owner", threadId: A, name })).rejects.toMatchObject({
      code: "usage.invalid",
    });
    expect(await r.journal.version(A)).toBe(1);
  });

  test("for a thread that is not there are refused, and nothing is made", async () => {
    await using r = await openRecord();
    await expect(nameThread(r.journal, { by: "user:owner", threadId: A, name: "x" })).rejects.toMatchObject({
      code: "thread.not-found",
    });
    expect(await r.journal.version(A)).toBe(0);
  });
});

describe("forks", () => {
  test("begin with the past of their parent up to its last ended turn, and the parent goes on by itself", async () => {
    await using r = await openRecord();
    await r.thread(A, ["1"]);
    await r.add(A, { type: "thread.named", v: 1, name: "not taken over" }, admitted("2"));
    const fork = await forkThread(r.journal, { by: "user:owner", threadId: A, origin: "test" });
    await r.add(fork, admitted("3"), ended("3"));
    await r.add(A, ended("2"));
    expect(shown(await readHistory(r.journal, fork))).toEqual([
      `${A}:1 thread.created`,
      `${A}:2 turn.admitted`,
      `${A}:3 turn.completed`,
      `${fork}:1 thread.created`,
      `${fork}:2 turn.admitted`,
      `${fork}:3 turn.completed`,
    ]);
    expect(shown(await readHistory(r.journal, A))).toHaveLength(6);
    expect(await r.journal.threads.get(fork)).toMatchObject({
      workspace: "/w",
      forkedFrom: { threadId: A, version: 3 },
      name: undefined,
    });
  });

  test("of forks hang where the turn is stored, so that a chain of them stays short", async () => {
    await using r = await openRecord();
    await r.thread(A, ["1", "2"]);
    const first = await forkThread(r.journal, { by: "user:owner", threadId: A, origin: "test", atTurn: "1" });
    const second = await forkThread(r.journal, { by: "user:owner", threadId: first, origin: "test" });
    await r.add(first, admitted("3"), ended("3"));
    const third = await forkThread(r.journal, {
      by: "user:owner",
      threadId: first,
      origin: "test",
      workspace: "/elsewhere",
    });
    const back = await forkThread(r.journal, { by: "user:owner", threadId: third, origin: "test", atTurn: "1" });
    const from = async (id: string): Promise<unknown> => (await r.journal.threads.get(id))?.forkedFrom;
    expect(await from(second)).toEqual({ threadId: A, version: 3 });
    expect(await from(third)).toEqual({ threadId: first, version: 3 });
    expect(await from(back)).toEqual({ threadId: A, version: 3 });
    expect(shown(await readHistory(r.journal, third)).map((text) => text.split(" ")[1])).toEqual(
      "thread.created turn.admitted turn.completed thread.created turn.admitted turn.completed thread.created".split(
        " ",
      ),
    );
  });

  test("of a thread without an ended turn have its beginning only", async () => {
    await using r = await openRecord();
    await r.thread(A);
    await r.add(A, admitted("1"));
    const fork = await forkThread(r.journal, { by: "user:owner", threadId: A, origin: "test" });
    expect(shown(await readHistory(r.journal, fork))).toEqual([`${A}:1 thread.created`, `${fork}:1 thread.created`]);
  });

  test("at a turn that is unknown or still runs, and of a thread that is gone, are refused", async () => {
    await using r = await openRecord();
    await r.thread(A, ["1"]);
    await r.add(A, admitted("2"));
    const fork = (atTurn: string): Promise<string> =>
      forkThread(r.journal, { by: "user:owner", threadId: A, origin: "test", atTurn });
    await expect(fork("9")).rejects.toMatchObject({
      code: "turn.not-found",
      message: expect.stringContaining("not in"),
    });
    await expect(fork("2")).rejects.toMatchObject({
      code: "turn.not-found",
      message: expect.stringContaining("ended"),
    });
    await r.add(A, ended("2"));
    await purgeThread(r.journal, { by: "user:owner", threadId: A });
    await expect(fork("1")).rejects.toMatchObject({ code: "thread.not-found" });
    expect(await r.journal.threads.list({ limit: 9 })).toEqual([]);
  });

  test("that go in a circle or too deep are damage, and are not followed for ever", async () => {
    await using r = await openRecord();
    const from = (threadId: string): EventBody => ({
      type: "thread.created",
      v: 1,
      workspace: "/w",
      origin: "test",
      forkedFrom: { threadId, version: 1 },
    });
    await r.add("x", from("y"));
    await r.add("y", from("x"));
    await expect(readHistory(r.journal, "x")).rejects.toMatchObject({ code: "store.damaged" });
    await r.add("self", from("self"));
    await expect(lineage(r.journal, "self")).rejects.toMatchObject({ code: "store.damaged" });
    await r.thread("deep-0");
    for (let depth = 1; depth <= 101; depth += 1) await r.add(`deep-${depth}`, from(`deep-${depth - 1}`));
    expect(await readHistory(r.journal, "deep-100")).toHaveLength(101);
    expect(await lineage(r.journal, "deep-100")).toHaveLength(101);
    await expect(readHistory(r.journal, "deep-101")).rejects.toMatchObject({ code: "limit.reached" });
    const refused = forkThread(r.journal, { by: "user:owner", threadId: "deep-100", origin: "test" });
    await expect(refused).rejects.toMatchObject({ code: "limit.reached" });
  });

  test("keep a deletion of their parent away until they are deleted", async () => {
    await using r = await openRecord();
    await r.thread(A, ["1"]);
    const fork = await forkThread(r.journal, { by: "user:owner", threadId: A, origin: "test" });
    await expect(purgeThread(r.journal, { by: "user:owner", threadId: A })).rejects.toMatchObject({
      code: "thread.has-forks",
      details: { forks: fork },
    });
    await purgeThread(r.journal, { by: "user:owner", threadId: fork });
    await purgeThread(r.journal, { by: "user:owner", threadId: A, reason: "no longer needed" });
    await purgeThread(r.journal, { by: "user:owner", threadId: A });
    const [last] = await r.journal.read({ stream: A, after: 3 });
    expect(last?.body).toEqual({ type: "thread.deleted", v: 1, reason: "no longer needed" });
  });
});

describe("an export of a thread", () => {
  test("holds its past and verifies; a deleted or unknown thread has none", async () => {
    await using r = await openRecord();
    await r.thread(A, ["1", "2"]);
    const fork = await forkThread(r.journal, { by: "user:owner", threadId: A, origin: "test", atTurn: "1" });
    await r.add(fork, admitted("3"), ended("3"));
    const report = await verifyExport(exportThread(r.journal, fork));
    expect(report).toMatchObject({ thread: fork, streams: 2, events: 6, damage: [] });
    await purgeThread(r.journal, { by: "user:owner", threadId: fork });
    for (const threadId of [fork, "nobody"]) {
      await expect(verifyExport(exportThread(r.journal, threadId))).rejects.toMatchObject({ code: "thread.not-found" });
    }
  });
});

test("the last settings are those of the last turn, inherited ones included", async () => {
  await using r = await openRecord();
  await r.thread(A);
  const last = async (id: string): Promise<string | undefined> => (await readLastSettings(r.journal, id))?.model;
  expect(await last(A)).toBeUndefined();
  await r.add(A, admitted("1", "first"), ended("1"));
  const fork = await forkThread(r.journal, { by: "user:owner", threadId: A, origin: "test" });
  await r.add(A, admitted("2", "second"), ended("2"));
  expect([await last(A), await last(fork)]).toEqual(["second", "first"]);
});

test("14.5: what a thread keeps for its next turn takes the same few reads, however many turns it has had", async () => {
  await using r = await openRecord();
  await r.thread(A, ["1", "2"]);
  await r.thread(
    B,
    Array.from({ length: 500 }, (_, index) => `b${index}`),
  );
  const counts: number[] = [];
  for (const id of [A, B]) {
    const calls: string[] = [];
    expect(await readStoredSettings(counting(r.journal, calls), id)).toMatchObject({
      turn: { model: "m" },
      workspace: "/w",
    });
    expect(calls).not.toContain("turns");
    counts.push(calls.length);
  }
  expect(counts[1]).toBe(counts[0]);
});

/** The same object, with the names of the methods that are called. */
function counting<T extends object>(target: T, calls: string[]): T {
  return new Proxy(target, {
    get(of, key) {
      const value: unknown = Reflect.get(of, key, of);
      if (typeof value === "object" && value !== null) return counting(value, calls);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown => {
        calls.push(String(key));
        return Reflect.apply(value, of, args);
      };
    },
  });
}

test("a thread is put away and brought back, each once; it counts as no activity and survives a rebuild", async () => {
  await using r = await openRecord();
  await r.thread(A, ["1"]);
  const { updatedAt } = await findThread(r.journal, A);
  const put = (isArchived: boolean): Promise<void> =>
    archiveThread(r.journal, { by: "user:owner", threadId: A, isArchived });
  for (const isArchived of [true, true]) await put(isArchived);
  await r.journal.rebuildProjections();
  expect(await findThread(r.journal, A)).toMatchObject({ isArchived: true, updatedAt });
  await put(false);
  expect(await findThread(r.journal, A)).toMatchObject({ isArchived: false });
  const kinds = (await readHistory(r.journal, A)).map(({ body }) => body.type);
  expect(kinds.filter((type) => type === "thread.archived")).toHaveLength(2);
  await expect(
    archiveThread(r.journal, { by: "user:owner", threadId: "none", isArchived: true }),
  ).rejects.toMatchObject({
    code: "thread.not-found",
  });
});
