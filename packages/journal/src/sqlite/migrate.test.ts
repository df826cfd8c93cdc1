import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { created, putSchema1, testHome } from "../suite/journal.samples.ts";
import { openJournal } from "./sqlite.ts";

const [A, B, C] = ["a", "b", "c"].map((last) => `01890000-0000-7000-8000-00000000000${last}`) as [
  string,
  string,
  string,
];
const COPY = "heddle.db.schema-1";

function schemaOf(file: string): number {
  using db = new DatabaseSync(file, { readOnly: true });
  return Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);
}

describe("a store of schema 1", () => {
  test("is brought forward when it is opened: events untouched, threads with what is known of them now", async () => {
    await using home = await testHome();
    putSchema1(home.path);
    await using journal = await openJournal({ home: home.path });
    expect(journal.damage).toBeUndefined();
    expect(await journal.verify()).toEqual({
      events: 10,
      streams: 3,
      checkpoints: 5,
      claims: 5,
      damage: [],
      notices: [],
      missing: [],
      violations: [],
    });
    expect(await journal.threads.list({ limit: 10 })).toMatchObject([
      { id: C, workspace: "/w", preview: "do t-c1", lastTurnStatus: "open", turnCount: 1, name: undefined },
      { id: A, workspace: "/w", preview: "mend the tests\\x07 please", lastTurnStatus: "completed", turnCount: 2 },
      { id: B, workspace: "/other", title: "second", preview: undefined, lastTurnStatus: undefined, turnCount: 0 },
    ]);
    expect(await journal.threads.turns(A)).toMatchObject([{ status: "failed" }, { status: "completed" }]);
    await journal.append({ stream: B, author: "user:owner", events: [{ type: "thread.named", v: 1, name: "later" }] });
    expect(await journal.threads.get(B)).toMatchObject({ name: "later" });
  });

  test("14.2: says user where names were not kept; such events are read as of an unnamed user, their bytes and hashes stay", async () => {
    await using home = await testHome();
    putSchema1(home.path);
    await using journal = await openJournal({ home: home.path });
    const [first] = await journal.read({ stream: A, after: 0, limit: 1 });
    expect(first?.author).toBe("user:unnamed");
    using db = new DatabaseSync(join(home.path, "heddle.db"), { readOnly: true });
    expect(db.prepare("SELECT DISTINCT author FROM events WHERE author LIKE 'user%'").all()).toEqual([
      { author: "user" },
    ]);
    expect((await journal.verify()).damage).toEqual([]);
  });

  test("leaves a private copy of itself, whole and of its own schema", async () => {
    await using home = await testHome();
    putSchema1(home.path);
    {
      await using _journal = await openJournal({ home: home.path });
    }
    const copy = join(home.path, COPY);
    expect((statSync(copy).mode & 0o777).toString(8)).toBe("600");
    expect([schemaOf(copy), schemaOf(join(home.path, "heddle.db"))]).toEqual([1, 17]);
    using before = new DatabaseSync(copy, { readOnly: true });
    using after = new DatabaseSync(join(home.path, "heddle.db"), { readOnly: true });
    const events = (db: DatabaseSync): unknown[] => db.prepare("SELECT * FROM events ORDER BY position").all();
    expect(events(before)).toEqual(events(after));
    expect(before.prepare("SELECT count(*) AS n FROM threads").get()).toMatchObject({ n: 3 });
  });

  test("is migrated once by whoever comes first, and opened again without another copy", async () => {
    await using home = await testHome();
    putSchema1(home.path);
    const journals = await Promise.all([1, 2, 3].map(() => openJournal({ home: home.path })));
    for (const journal of journals) {
      expect(await journal.threads.get(A)).toMatchObject({ lastTurnStatus: "completed" });
      await journal[Symbol.asyncDispose]();
    }
    const made = statSync(join(home.path, COPY)).ino;
    await using _again = await openJournal({ home: home.path });
    expect(statSync(join(home.path, COPY)).ino).toBe(made);
  });

  test("replaces the copy of an earlier migration and half a copy that a crash left", async () => {
    await using home = await testHome();
    putSchema1(home.path);
    writeFileSync(join(home.path, "heddle.db.schema-0"), "older");
    writeFileSync(join(home.path, `${COPY}.partial`), "half");
    {
      await using _journal = await openJournal({ home: home.path });
    }
    const copies = readdirSync(home.path).filter((name) => name.includes(".schema-"));
    expect(copies).toEqual([COPY]);
  });

  test("stays at its schema, untouched, when the copy cannot be made", async () => {
    await using home = await testHome();
    putSchema1(home.path);
    mkdirSync(join(home.path, COPY, "in the way"), { recursive: true });
    await expect(openJournal({ home: home.path })).rejects.toMatchObject({ code: "store.failed" });
    expect(schemaOf(join(home.path, "heddle.db"))).toBe(1);
    expect(existsSync(join(home.path, `${COPY}.partial`))).toBe(false);
  });

  test("a new store begins at the newest schema, without a copy", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await journal.append({ stream: "a", author: "user:owner", events: [created] });
    expect(schemaOf(join(home.path, "heddle.db"))).toBe(17);
    expect(readdirSync(home.path).filter((name) => name.includes(".schema-"))).toEqual([]);
  });

  test("deleting a thread empties it in the copy too", async () => {
    await using home = await testHome();
    putSchema1(home.path);
    await using journal = await openJournal({ home: home.path });
    await journal.purge({ stream: A, author: "user:owner", reason: "tidy" });
    expect(readFileSync(join(home.path, COPY)).includes("mend  the")).toBe(false);
    using copy = new DatabaseSync(join(home.path, COPY), { readOnly: true });
    const count = copy.prepare("SELECT count(*) AS n FROM events WHERE body IS NOT NULL").get();
    expect(count).toMatchObject({ n: 3 });
  });
});
