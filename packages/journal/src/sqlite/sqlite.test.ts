import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { HeddleError } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { admitted, completed, created, said, testHome } from "../suite/journal.samples.ts";
import { journalSuite } from "../suite/journal.suite.ts";
import { THREADS, TURNS } from "../sql/queries/thread-rows.ts";
import * as backend from "./sqlite.backend.ts";
import { openJournal } from "./sqlite.ts";

journalSuite("journal on SQLite", backend);

const author = "system";

describe("the store", () => {
  test("is private to its owner: folders 0700, files 0600", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await journal.append({ stream: "a", author, events: [created] });
    // Checkpoints follow a moment later; whoever asks for a proof does not have to wait.
    await journal.verify();
    const mode = (name: string): string => (statSync(join(home.path, name)).mode & 0o777).toString(8);
    expect(["", "keys", "checkpoints"].map(mode)).toEqual(["700", "700", "700"]);
    const files = ["heddle.db", "heddle.db-wal", "heddle.db-shm", "witness.log", "reserve"];
    expect(files.map(mode)).toEqual(files.map(() => "600"));
    expect(["keys/journal.key", "keys/journal.pub", "checkpoints/a.jsonl"].map(mode)).toEqual(["600", "600", "600"]);
  });

  test("refuses by itself to delete or change an event or a key; a body can go, and is missed when no deletion is recorded", async () => {
    await using home = await testHome();
    {
      await using journal = await openJournal({ home: home.path });
      await journal.append({ stream: "a", author, events: [created, said("secret")], key: "k" });
    }
    {
      using db = new DatabaseSync(join(home.path, "heddle.db"));
      const columns = [
        "position",
        "stream",
        "version",
        "id",
        "at",
        "author",
        "type",
        "v",
        "body_hash",
        "prev_hash",
        "hash",
      ];
      for (const column of columns) {
        expect(() => db.exec(`UPDATE events SET ${column} = ${column}`)).toThrow("events never change");
      }
      expect(() => db.exec("DELETE FROM events WHERE version = 2")).toThrow("events are never deleted");
      expect(() => db.exec("UPDATE events SET body = '{}'")).toThrow("a body can only be purged");
      expect(() => db.exec("DELETE FROM append_keys")).toThrow("keys are never deleted");
      expect(() => db.exec("UPDATE append_keys SET stream = 'b'")).toThrow("keys never change");
      db.exec("UPDATE events SET body = NULL WHERE version = 2");
    }
    await using journal = await openJournal({ home: home.path });
    expect(await journal.verify()).toMatchObject({
      events: 2,
      damage: [{ kind: "body-altered", stream: "a", version: 2, message: expect.stringContaining("no deletion") }],
    });
    await expect(journal.read({ stream: "a", after: 1 })).rejects.toMatchObject({ code: "store.purged" });
    expect(await journal.read({ stream: "a", after: 0, limit: 1 })).toHaveLength(1);
  });

  test("from a newer Heddle is refused and left alone", async () => {
    await using home = await testHome();
    {
      await using journal = await openJournal({ home: home.path });
      await journal.append({ stream: "a", author, events: [created] });
    }
    const path = join(home.path, "heddle.db");
    {
      using db = new DatabaseSync(path);
      db.exec("PRAGMA user_version = 9999");
    }
    const before = readFileSync(path);
    await expect(openJournal({ home: home.path })).rejects.toMatchObject({
      code: "store.newer",
      details: { found: 9999 },
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("keeps no secret: not in the database, the WAL, the witness or what append returns", async () => {
    await using home = await testHome();
    const token = `ghp_${"Q7x".repeat(12)}`;
    const registered = "exact-value-4711";
    await using journal = await openJournal({ home: home.path, secrets: [registered] });
    const { events } = await journal.append({ stream: "a", author, events: [said(`${token} and ${registered}`)] });
    expect(events[0]?.body).toMatchObject({ item: { text: "[redacted:github-token] and [redacted:known-secret]" } });
    expect(await journal.read({ after: 0 })).toEqual(events);
    for (const file of ["heddle.db", "heddle.db-wal", "witness.log"]) {
      const bytes = readFileSync(join(home.path, file), "latin1");
      expect(bytes).not.toContain(token);
      expect(bytes).not.toContain(registered);
    }
    expect(journal.redactor.text(registered)).toBe("[redacted:known-secret]");
    expect(await journal.verify()).toMatchObject({ damage: [] });
  });

  test("writes a checkpoint at the first event, at each end of a turn and every 256 events", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    const append = (count: number): Promise<unknown> =>
      journal.append({
        stream: "a",
        author,
        events: Array.from({ length: count }, () => said("x")),
        durability: "relaxed",
      });
    await append(1);
    await append(1);
    await journal.append({ stream: "a", author, events: [completed("t"), said("after")] });
    await append(250);
    await append(3);
    await append(300);
    await journal.verify();
    const lines = readFileSync(join(home.path, "checkpoints/a.jsonl"), "utf8").trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).version)).toEqual([1, 4, 257, 557]);
    expect(await journal.verify("a")).toMatchObject({ events: 557, streams: 1, checkpoints: 4, damage: [] });
  });

  test("keeps its witness small, and every line of it true, however much is appended", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await using other = await openJournal({ home: home.path });
    const stream = "s".repeat(2000);
    for (let index = 0; index < 600; index += 1) {
      await (index % 3 === 0 ? other : journal).append({ stream, author, events: [said(`${index}`)] });
    }
    const size = (name: string): number => statSync(join(home.path, name)).size;
    expect(size("witness.log.1")).toBeGreaterThan(0);
    expect(size("witness.log") + size("witness.log.1")).toBeLessThan(2 * 320 * 1024);
    expect(await journal.verify()).toMatchObject({ events: 600, damage: [], notices: [] });
  });

  test("answers every question by an index", async () => {
    await using home = await testHome();
    {
      await using journal = await openJournal({ home: home.path });
      await journal.append({ stream: "a", author, events: [created, admitted("t")] });
    }
    using db = new DatabaseSync(join(home.path, "heddle.db"));
    const sql = [
      ...Object.values(THREADS),
      ...Object.values(TURNS),
      "SELECT version FROM events WHERE stream = ? AND version > ? ORDER BY version LIMIT ?",
      "SELECT max(version) FROM events WHERE stream = ?",
      "SELECT position FROM events WHERE position > ? ORDER BY position LIMIT ?",
    ];
    for (const query of sql) {
      const values = Array.from({ length: query.split("?").length - 1 }, () => 1);
      const plan = db
        .prepare(`EXPLAIN QUERY PLAN ${query}`)
        .all(...values)
        .map((row) => String(row["detail"]));
      expect(plan.join("; ")).toMatch(/SEARCH|USING (COVERING )?INDEX/);
      expect(plan.join("; ")).not.toMatch(/TEMP B-TREE/);
    }
  });

  test("refuses to work after it is closed, and closing twice is harmless", async () => {
    await using home = await testHome();
    const journal = await openJournal({ home: home.path });
    const last = journal.append({ stream: "a", author, events: [created] });
    await journal[Symbol.asyncDispose]();
    await journal[Symbol.asyncDispose]();
    expect((await last).events).toHaveLength(1);
    await expect(journal.read({ after: 0 })).rejects.toMatchObject({ code: "store.failed" });
    await expect(journal.append({ stream: "a", author, events: [created] })).rejects.toBeInstanceOf(HeddleError);
  });

  test("stores nothing for an append of no events", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    expect(await journal.append({ stream: "a", author, events: [] })).toEqual({ events: [], isRepeat: false });
    expect(await journal.version("a")).toBe(0);
  });

  test("waits for a lock that another program holds for a while", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    using other = new DatabaseSync(join(home.path, "heddle.db"));
    other.exec("BEGIN IMMEDIATE");
    const pending = journal.append({ stream: "a", author, events: [created] });
    // Reading is never held up by a writer.
    expect(await journal.read({ after: 0 })).toEqual([]);
    setTimeout(() => other.exec("COMMIT"), 150);
    expect((await pending).events).toHaveLength(1);
  });
});

describe("files torn by a crash", () => {
  async function filled(home: string): Promise<void> {
    await using journal = await openJournal({ home });
    await journal.append({ stream: "a", author, events: [created, admitted("t"), completed("t")] });
  }

  test("half a line in witness and checkpoints is left out, said, and never overwritten", async () => {
    await using home = await testHome();
    await filled(home.path);
    const files = ["witness.log", "checkpoints/a.jsonl"].map((name) => join(home.path, name));
    for (const file of files) writeFileSync(file, readFileSync(file, "utf8") + '{"1 1 a 4 abcdef');
    const before = files.map((file) => readFileSync(file, "utf8"));
    await using journal = await openJournal({ home: home.path });
    expect(journal.damage).toBeUndefined();
    expect(journal.notices).toMatchObject([{ kind: "witness-torn" }]);
    await journal.append({ stream: "a", author, events: [admitted("t2"), completed("t2")] });
    expect(files.map((file, index) => readFileSync(file, "utf8").startsWith(before[index] ?? "-"))).toEqual([
      true,
      true,
    ]);
    const report = await journal.verify();
    expect(report).toMatchObject({ checkpoints: 2, damage: [] });
    expect(report.notices.map((notice) => notice.kind)).toEqual(["witness-torn", "checkpoint-torn"]);
  });

  test.each(["", "-----BEGIN PRIVATE"])(
    "a private key that is only %j stays, and appends go on without checkpoints",
    async (content) => {
      await using home = await testHome();
      await filled(home.path);
      const key = join(home.path, "keys/journal.key");
      writeFileSync(key, content);
      await using journal = await openJournal({ home: home.path });
      await journal.append({ stream: "a", author, events: [completed("t2")] });
      await journal.verify();
      expect(readFileSync(key, "utf8")).toBe(content);
      expect(journal.notices).toMatchObject([{ kind: "checkpoint-failed", message: expect.stringContaining(key) }]);
      // The public half is enough to verify what was signed before.
      expect(await journal.verify()).toMatchObject({ checkpoints: 1, damage: [], notices: [] });
    },
  );

  test("an empty public key is derived from the private one, and stays", async () => {
    await using home = await testHome();
    await filled(home.path);
    writeFileSync(join(home.path, "keys/journal.pub"), "");
    await using journal = await openJournal({ home: home.path });
    await journal.append({ stream: "a", author, events: [completed("t2")] });
    expect(await journal.verify()).toMatchObject({ checkpoints: 2, damage: [] });
    expect(readFileSync(join(home.path, "keys/journal.pub"), "utf8")).toBe("");
  });

  test("with both halves of the key unreadable verification says so", async () => {
    await using home = await testHome();
    await filled(home.path);
    for (const name of ["journal.key", "journal.pub"]) writeFileSync(join(home.path, "keys", name), "");
    await using journal = await openJournal({ home: home.path });
    expect(await journal.verify()).toMatchObject({ checkpoints: 0, damage: [], notices: [{ kind: "key-unusable" }] });
  });

  test("an empty witness is no damage: a crash may come before it is written", async () => {
    await using home = await testHome();
    await filled(home.path);
    writeFileSync(join(home.path, "witness.log"), "");
    await using journal = await openJournal({ home: home.path });
    expect(journal.damage).toBeUndefined();
    expect(existsSync(join(home.path, "witness.log.1"))).toBe(false);
    await journal.append({ stream: "a", author, events: [said("x")] });
    expect(readFileSync(join(home.path, "witness.log"), "utf8")).toMatch(/^4 1 a 4 [0-9a-f]{64}\n$/);
  });
});
