import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate as breathe } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { EventBody } from "@heddle/protocol";
import type { Journal } from "../journal.ts";
import { admitted, completed, created, said, testHome } from "../suite/journal.samples.ts";
import { openJournal } from "./sqlite.ts";

const author = "user:owner";
const CANARY = "a sentence nobody else would write";
const reason = "asked for";

async function fill(journal: Journal, stream: string, text = CANARY): Promise<void> {
  await journal.append({ stream, author, events: [created] });
  await journal.append({ stream, author, events: [admitted(`${stream}1`), said(text), completed(`${stream}1`)] });
}

function forkOf(threadId: string, version = 4): EventBody {
  return { type: "thread.created", v: 1, workspace: "/w", origin: "exec", forkedFrom: { threadId, version } };
}

describe("purging a thread", () => {
  test("removes what it said and keeps a chain, checkpoints and witness that verify", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal, "a");
    await fill(journal, "b", "kept");
    const deleted = await journal.purge({ stream: "a", author, reason });
    expect(deleted).toMatchObject({ stream: "a", version: 5, body: { type: "thread.deleted", reason } });
    const report = await journal.verify();
    expect(report).toMatchObject({ events: 9, streams: 2, checkpoints: 5, damage: [] });
    expect(report.notices).toMatchObject([{ kind: "bodies-purged", message: expect.stringContaining("4 event(s)") }]);
    expect((await journal.verify("b")).notices).toEqual([]);
    await expect(journal.read({ stream: "a", after: 0 })).rejects.toMatchObject({ code: "store.purged" });
    expect(await journal.read({ stream: "a", after: 4 })).toHaveLength(1);
  });

  test("leaves no byte of it in any file of the home", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal, "a", `${CANARY} ${"long ".repeat(20_000)}${CANARY}`);
    await journal.append({ stream: "a", author, events: [{ type: "thread.named", v: 1, name: CANARY }] });
    // Many small rows between those of another thread make SQLite move them from page to page.
    await fill(journal, "b", "kept");
    for (let index = 0; index < 200; index += 1) {
      const events = [said(index % 2 === 0 ? `${CANARY} ${"again ".repeat(index)}` : "kept ".repeat(index))];
      await journal.append({ stream: index % 2 === 0 ? "a" : "b", author, events, durability: "relaxed" });
    }
    const holding = (): string[] =>
      readdirSync(home.path, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(CANARY))
        .map(({ name }) => name);
    expect(holding()).not.toEqual([]);
    await journal.purge({ stream: "a", author, reason });
    expect(holding()).toEqual([]);
    expect(journal.notices).toEqual([]);
    expect(await journal.verify()).toMatchObject({ events: 210, damage: [] });
  });

  test("takes the thread out of every answer, also after the projections are made anew", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    for (const stream of ["aaaaaaaa1", "aaaaaaaa2"]) {
      await fill(journal, stream);
      await journal.append({ stream, author, events: [{ type: "thread.named", v: 1, name: "same" }] });
    }
    await journal.purge({ stream: "aaaaaaaa1", author, reason });
    const { threads } = journal;
    const answers = async (): Promise<unknown> => ({
      get: await threads.get("aaaaaaaa1"),
      list: (await threads.list({ limit: 9 })).map(({ id }) => id),
      here: (await threads.list({ workspace: "/w", limit: 9 })).map(({ id }) => id),
      named: (await threads.named("same", { limit: 9 })).map(({ id }) => id),
      begun: (await threads.beginningWith("aaaaaaaa", { limit: 9 })).map(({ id }) => id),
      turns: await threads.turns("aaaaaaaa1"),
      deleted: [
        await threads.isDeleted("aaaaaaaa1"),
        await threads.isDeleted("aaaaaaaa2"),
        await threads.isDeleted("x"),
      ],
    });
    const rest = ["aaaaaaaa2"];
    const expected = {
      get: undefined,
      list: rest,
      here: rest,
      named: rest,
      begun: rest,
      turns: [],
      deleted: [true, false, false],
    };
    expect(await answers()).toEqual(expected);
    await journal.rebuildProjections();
    expect(await answers()).toEqual(expected);
  });

  test("is refused while a turn is open, and for a thread that is not there or is gone", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal, "a");
    await journal.append({ stream: "a", author, events: [admitted("a2")] });
    await expect(journal.purge({ stream: "a", author, reason })).rejects.toMatchObject({ code: "turn.active" });
    expect(await journal.version("a")).toBe(5);
    await journal.append({ stream: "a", author, events: [completed("a2")] });
    await journal.purge({ stream: "a", author, reason });
    for (const stream of ["a", "nobody"]) {
      await expect(journal.purge({ stream, author, reason })).rejects.toMatchObject({ code: "thread.not-found" });
    }
  });

  test("is refused while a fork has its past there, and names it; with the fork gone it is done", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal, "a");
    for (const stream of ["f1", "f2"]) await journal.append({ stream, author, events: [forkOf("a")] });
    await expect(journal.purge({ stream: "a", author, reason })).rejects.toMatchObject({
      code: "thread.has-forks",
      details: { forks: "f2 f1" },
    });
    expect((await journal.read({ stream: "a", after: 0 })).map(({ version }) => version)).toEqual([1, 2, 3, 4]);
    for (const stream of ["f1", "f2"]) await journal.purge({ stream, author, reason });
    await journal.purge({ stream: "a", author, reason });
    expect((await journal.verify()).damage).toEqual([]);
  });

  test("lets nothing be added after the end, and no fork begin there", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal, "a");
    await journal.purge({ stream: "a", author, reason });
    const named: EventBody = { type: "thread.named", v: 1, name: "back" };
    await expect(journal.append({ stream: "a", author, events: [named] })).rejects.toMatchObject({
      code: "thread.not-found",
    });
    await expect(journal.append({ stream: "f", author, events: [forkOf("a")] })).rejects.toMatchObject({
      code: "thread.not-found",
    });
    expect([await journal.version("a"), await journal.version("f")]).toEqual([5, 0]);
  });

  test("does not stand in the way of a reader of the whole journal", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal, "a");
    await fill(journal, "b", "kept");
    await journal.purge({ stream: "a", author, reason });
    const types: string[] = [];
    for await (const event of journal.tail({ after: 0, signal: AbortSignal.timeout(60_000) })) {
      types.push(`${event.stream} ${event.body.type}`);
      if (event.body.type === "thread.deleted") break;
    }
    expect(types).toEqual([
      "b thread.created",
      "b turn.admitted",
      "b item.completed",
      "b turn.completed",
      "a thread.deleted",
    ]);
    expect(await journal.read({ after: 0 })).toHaveLength(5);
  });

  test("says so when a reader keeps the old bytes in the WAL, and they go with the reader", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal, "a");
    const wal = join(home.path, "heddle.db-wal");
    {
      using reader = new DatabaseSync(join(home.path, "heddle.db"), { readOnly: true });
      reader.exec("BEGIN");
      reader.prepare("SELECT count(*) FROM events").get();
      await journal.purge({ stream: "a", author, reason });
      expect(journal.notices).toMatchObject([{ kind: "purge-unsettled" }]);
      expect(readFileSync(wal).includes(CANARY)).toBe(true);
      reader.exec("COMMIT");
    }
    await fill(journal, "b", "kept");
    await journal.purge({ stream: "b", author, reason });
    expect(readFileSync(wal).includes(CANARY)).toBe(false);
  });

  test("a body that somebody removed without a deletion is damage, whatever follows in other threads", async () => {
    await using home = await testHome();
    {
      await using journal = await openJournal({ home: home.path });
      await fill(journal, "a");
      await fill(journal, "b");
      await journal.purge({ stream: "b", author, reason });
    }
    {
      using db = new DatabaseSync(join(home.path, "heddle.db"));
      db.exec("UPDATE events SET body = NULL WHERE stream = 'a' AND version IN (2, 3)");
    }
    await using journal = await openJournal({ home: home.path });
    const report = await journal.verify();
    expect(report.damage).toMatchObject([{ kind: "body-altered", stream: "a", version: 2, position: 2 }]);
    expect(report.notices).toMatchObject([{ kind: "bodies-purged", message: expect.stringContaining("4 event(s)") }]);
  });
});

describe("12.14: a store that is too large to be written anew", () => {
  const BODY = "x".repeat(100_000);

  /** 45 MB in one thread and a little in another. */
  async function fillLarge(journal: Journal): Promise<void> {
    await journal.append({ stream: "kept", author, events: [created] });
    await journal.append({ stream: "large", author, events: [created] });
    for (let nth = 0; nth < 90; nth += 1) {
      const events = Array.from({ length: 5 }, () => said(BODY));
      await journal.append({ stream: "large", author, events, durability: "relaxed" });
    }
  }

  const sizeOf = (home: string): number => statSync(join(home, "heddle.db")).size;

  test("gives the room of a deleted thread back, and others append meanwhile", async () => {
    await using home = await testHome();
    {
      await using journal = await openJournal({ home: home.path });
      await fillLarge(journal);
      let isOver = false;
      const purging = journal
        .purge({ stream: "large", author, reason })
        .then(() => journal.settled())
        .finally(() => (isOver = true));
      let appended = 0;
      while (!isOver) {
        await journal.append({ stream: "kept", author, events: [said("beside")] });
        appended += 1;
        await breathe();
      }
      await purging;
      // A slice is a megabyte: between two of them there is always room for an append.
      expect(appended).toBeGreaterThan(20);
      expect(journal.notices).toMatchObject([{ message: expect.stringContaining("heddle store compact") }]);
      expect(await journal.verify()).toMatchObject({ events: 453 + appended, damage: [] });
      expect(readdirSync(join(home.path, "purging"))).toEqual([]);
    }
    expect(sizeOf(home.path)).toBeLessThan(8_000_000);
  });

  test("of an earlier Heddle says what gives the room back, and that does", async () => {
    await using home = await testHome();
    await (await openJournal({ home: home.path }))[Symbol.asyncDispose]();
    {
      using db = new DatabaseSync(join(home.path, "heddle.db"));
      db.exec("PRAGMA auto_vacuum = NONE; VACUUM");
    }
    await using journal = await openJournal({ home: home.path });
    await fillLarge(journal);
    await journal.purge({ stream: "large", author, reason });
    await journal.settled();
    expect(journal.notices).toMatchObject([{ message: expect.stringContaining("heddle store compact frees it") }]);
    expect(sizeOf(home.path)).toBeGreaterThan(40_000_000);
    await journal.compact();
    expect(sizeOf(home.path)).toBeLessThan(8_000_000);
    expect(await journal.verify()).toMatchObject({ events: 453, damage: [] });
  });
});

test("12.14: a purge whose process is killed between two slices is clean before and after the next one continues", async () => {
  await using home = await testHome();
  const program = fileURLToPath(new URL("../../test/purge-in-child.ts", import.meta.url));
  const child = spawnSync(process.execPath, ["--conditions=heddle-source", program, home.path], {
    env: { ...process.env, HEDDLE_FAILPOINT: "purge.after-slice@2=kill" },
  });
  expect(child.signal).toBe("SIGKILL");
  await using journal = await openJournal({ home: home.path });
  const bodies = (): unknown => {
    using db = new DatabaseSync(join(home.path, "heddle.db"), { readOnly: true });
    return db.prepare("SELECT count(body) AS count FROM events WHERE stream = 'a'").get();
  };
  expect(bodies()).toEqual({ count: 201 - 64 + 1 });
  expect(await journal.threads.isDeleted("a")).toBe(true);
  expect((await journal.verify()).damage).toEqual([]);
  await journal.finishPurges();
  expect(bodies()).toEqual({ count: 1 });
  expect(await journal.verify()).toMatchObject({ events: 202, damage: [] });
  expect(readdirSync(join(home.path, "purging"))).toEqual([]);
});
