/** What a crash, a bad disk or a careless hand does to the files: found on opening, named, and nothing made worse. */
import { createHash } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { StoredEvent } from "@heddle/protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BACKEND } from "./sqlite.backend.ts";
import { startAppender } from "../suite/journal.appender.ts";
import { said, testHome, type TestHome } from "../suite/journal.samples.ts";
import { openJournal } from "./sqlite.ts";

const COUNT = 60;
let original: TestHome;
let events: readonly StoredEvent[];

/** A process killed with everything it stored still in the WAL. */
beforeAll(async () => {
  original = await testHome();
  const failpoint = `journal.append.before-begin@${COUNT + 1}=kill`;
  await using appender = startAppender({
    store: { address: original.path, backend: BACKEND },
    stream: "a",
    count: COUNT + 1,
    failpoint,
  });
  expect(await appender.ended()).toMatchObject({ signal: "SIGKILL" });
  expect(appender.ids).toHaveLength(COUNT);
  await using copy = await copyOf(original);
  await using journal = await openJournal({ home: copy.path });
  events = await journal.read({ after: 0 });
  expect(events.map((event) => event.id)).toEqual(appender.ids);
});

afterAll(() => original[Symbol.asyncDispose]());

async function copyOf(home: TestHome): Promise<TestHome> {
  const copy = await testHome();
  cpSync(home.path, copy.path, { recursive: true });
  return copy;
}

/** The same, after a clean end: everything in the database itself. */
async function cleanCopy(): Promise<TestHome> {
  const copy = await copyOf(original);
  const journal = await openJournal({ home: copy.path });
  await journal[Symbol.asyncDispose]();
  expect(existsSync(wal(copy))).toBe(false);
  return copy;
}

const database = (home: TestHome): string => join(home.path, "heddle.db");
const wal = (home: TestHome): string => join(home.path, "heddle.db-wal");

/** Every file but SQLite's shared index, which holds nothing of its own, and an empty WAL, which says nothing. */
function manifest(home: TestHome): Record<string, string> {
  const names = readdirSync(home.path, { recursive: true, encoding: "utf8" }).toSorted();
  const files = names.filter((name) => {
    const stats = statSync(join(home.path, name));
    return stats.isFile() && !name.endsWith("-shm") && !(name.endsWith("-wal") && stats.size === 0);
  });
  const digest = (name: string): string =>
    createHash("sha256")
      .update(readFileSync(join(home.path, name)))
      .digest("hex");
  return Object.fromEntries(files.map((name) => [name, digest(name)]));
}

function flip(path: string, offset: number): void {
  const bytes = readFileSync(path);
  bytes[offset] = (bytes[offset] ?? 0) ^ 0x55;
  writeFileSync(path, bytes);
}

function zero(path: string, from: number): void {
  const bytes = readFileSync(path);
  bytes.fill(0, from);
  writeFileSync(path, bytes);
}

describe("an acknowledged tail that is gone", () => {
  test.each([
    ["the WAL cut by one byte", (home: TestHome) => truncateSync(wal(home), statSync(wal(home)).size - 1)],
    ["the WAL cut in half", (home: TestHome) => truncateSync(wal(home), statSync(wal(home)).size / 2)],
    ["the WAL emptied", (home: TestHome) => truncateSync(wal(home), 0)],
    ["the end of the WAL zeroed", (home: TestHome) => zero(wal(home), statSync(wal(home)).size - 5000)],
    ["one byte flipped in the middle of the WAL", (home: TestHome) => flip(wal(home), statSync(wal(home)).size / 2)],
    ["one byte flipped in the head of the WAL", (home: TestHome) => flip(wal(home), 17)],
    ["the WAL deleted", (home: TestHome) => rmSync(wal(home))],
    ["the database deleted", (home: TestHome) => rmSync(database(home))],
    ["the database emptied", (home: TestHome) => truncateSync(database(home), 0)],
    ["database and WAL deleted", (home: TestHome) => [database(home), wal(home)].map((path) => rmSync(path))],
  ])("%s: found, named, nothing made anew", async (_name, strike) => {
    await using home = await copyOf(original);
    // As after a reboot: the shared index is not there to help.
    rmSync(`${database(home)}-shm`);
    strike(home);
    const before = manifest(home);
    {
      await using journal = await openJournal({ home: home.path });
      const left = await journal.read({ after: 0 });
      expect(left).toEqual(events.slice(0, left.length));
      expect(left.length).toBeLessThan(COUNT);
      expect(journal.damage).toMatchObject({ kind: "tail-lost", position: left.length + 1 });
      if (left.length > 0) expect(journal.damage).toMatchObject({ stream: "a", version: left.length + 1 });
      expect(journal.isWritable).toBe(false);
      await expect(journal.append({ stream: "a", author: "user:owner", events: [said("x")] })).rejects.toMatchObject({
        code: "store.damaged",
      });
      expect((await journal.verify()).damage[0]).toMatchObject({ kind: "tail-lost" });
    }
    expect(manifest(home)).toEqual(before);
    await using again = await openJournal({ home: home.path });
    expect(again.damage).toMatchObject({ kind: "tail-lost" });
  });

  test("two processes that open the damaged store say the same", async () => {
    await using home = await copyOf(original);
    truncateSync(wal(home), statSync(wal(home)).size / 2);
    await using first = await openJournal({ home: home.path });
    await using second = await openJournal({ home: home.path });
    expect(second.damage).toEqual(first.damage);
  });
});

describe("damage to the database file", () => {
  test("one byte flipped in the content of events is found by verify, at exactly those events", async () => {
    await using home = await cleanCopy();
    const content = "x".repeat(100);
    const bytes = readFileSync(database(home));
    for (let at = bytes.indexOf(content); at >= 0; at = bytes.indexOf(content, at + 100)) flip(database(home), at + 50);
    await using journal = await openJournal({ home: home.path });
    const { damage } = await journal.verify();
    const altered = events.filter((event) => event.body.type === "item.completed");
    expect(damage.map(({ kind, version }) => ({ kind, version }))).toEqual(
      altered.map(({ version }) => ({ kind: "body-altered", version })),
    );
  });

  test.each([
    ["the first page", 0],
    ["the list of tables", 100],
  ])("%s overwritten: opened without content, and left alone", async (_name, offset) => {
    await using home = await cleanCopy();
    const bytes = readFileSync(database(home));
    bytes.fill(0xa5, offset, offset + 64);
    writeFileSync(database(home), bytes);
    const before = manifest(home);
    {
      await using journal = await openJournal({ home: home.path });
      expect(journal.damage).toMatchObject({ kind: "file-corrupt" });
      await expect(journal.append({ stream: "a", author: "user:owner", events: [said("x")] })).rejects.toMatchObject({
        code: "store.damaged",
      });
      expect(await journal.read({ after: 0 })).toEqual([]);
      expect((await journal.verify()).damage.length).toBeGreaterThan(0);
    }
    expect(manifest(home)).toEqual(before);
  });

  test("every page overwritten in turn: verify always finds it, and no read invents anything", async () => {
    await using clean = await cleanCopy();
    const pages = statSync(database(clean)).size / 4096;
    expect(pages).toBeGreaterThan(10);
    for (let page = 0; page < pages; page += 1) {
      await using home = await copyOf(clean);
      const bytes = readFileSync(database(home));
      // A page without content (free, or an index nobody wrote to yet) has nothing to damage.
      if (bytes.subarray(page * 4096, (page + 1) * 4096).every((byte) => byte === 0)) continue;
      bytes.fill(0x5a, page * 4096, (page + 1) * 4096);
      writeFileSync(database(home), bytes);
      await using journal = await openJournal({ home: home.path });
      const { damage } = await journal.verify();
      expect(damage.length, `page ${page}`).toBeGreaterThan(0);
      const read = await journal.read({ after: 0 }).catch((error: unknown) => error);
      if (Array.isArray(read)) expect(read).toEqual(events.slice(0, read.length));
      else expect(read).toMatchObject({ code: "store.damaged" });
    }
  });

  test("a file that is no database, and the database of another program, are left alone", async () => {
    for (const content of [Buffer.from("dear diary\n".repeat(500)), foreign()]) {
      await using home = await testHome();
      await (await openJournal({ home: home.path }))[Symbol.asyncDispose]();
      writeFileSync(database(home), content);
      {
        await using journal = await openJournal({ home: home.path });
        expect(journal.damage).toMatchObject({ kind: "file-corrupt" });
      }
      expect(readFileSync(database(home)).equals(content)).toBe(true);
    }
  });
});

function foreign(): Buffer {
  using db = new DatabaseSync(":memory:");
  db.exec("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')");
  return Buffer.from(db.serialize());
}

describe("no damage at all", () => {
  test("garbage in SQLite's shared index", async () => {
    await using home = await copyOf(original);
    writeFileSync(`${database(home)}-shm`, Buffer.alloc(32_768, 0x5a));
    await using journal = await openJournal({ home: home.path });
    expect(journal.damage).toBeUndefined();
    expect(await journal.read({ after: 0 })).toEqual(events);
    await journal.append({ stream: "a", author: "user:owner", events: [said("on")] });
  });

  test("an unfinished transaction at the end of the WAL", async () => {
    await using home = await copyOf(original);
    writeFileSync(wal(home), Buffer.concat([readFileSync(wal(home)), Buffer.alloc(3000, 0x5a)]));
    rmSync(`${database(home)}-shm`);
    await using journal = await openJournal({ home: home.path });
    expect(journal.damage).toBeUndefined();
    expect(await journal.read({ after: 0 })).toEqual(events);
  });
});
