/** What is true of a journal on Postgres beside the promises: how it is opened, upgraded, watched over and kept from others. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { admitted, completed, created, said } from "../suite/journal.samples.ts";
import { verifyExport } from "../evidence/verify-export.ts";
import { importBundle } from "../evidence/import.ts";
import { openJournal as openSqlite } from "../open-journal.ts";
import { readAddress } from "./address.ts";
import { adoptStore } from "./adopt.ts";
import { newStore } from "./postgres.backend.ts";
import { NEWEST } from "./schema.ts";

const author = "system";

test("an address names a schema, and is told without its password", () => {
  const { password, ...told } = readAddress(
    "postgres://ann:se%20cret@db.example:5433/work?schema=team_a&sslmode=require",
  );
  expect({ password, ...told }).toEqual({
    url: "postgres://ann:se%20cret@db.example:5433/work?sslmode=require",
    schema: "team_a",
    name: "db.example:5433/work (schema team_a)",
    password: "se cret",
  });
  expect(readAddress("postgresql://db/work").schema).toBe("heddle");
  for (const wrong of [
    "postgres://db/work?schema=A",
    "postgres://db/work?schema=pg_x",
    "postgres://db",
    "postgres:",
    "x",
  ])
    expect(() => readAddress(wrong)).toThrow(expect.objectContaining({ code: "config.invalid" }));
});

describe("the store", () => {
  test("refuses by itself to delete or change an event or a key; a body can go, and is missed when no deletion is recorded", async () => {
    await using store = await newStore();
    {
      await using journal = await store.open();
      await journal.append({ stream: "a", author, events: [created, said("secret")], key: "k" });
    }
    const columns = "position stream version id at author type v body_hash prev_hash hash".split(" ");
    for (const column of columns) {
      const change = `UPDATE events SET body = NULL, ${column} = ${/position|version|at|^v$/.test(column) ? 77 : "'x'"} WHERE version = 2`;
      await expect(store.sql(change)).rejects.toThrow("events never change");
    }
    await expect(store.sql("DELETE FROM events WHERE version = 2")).rejects.toThrow("events are never deleted");
    await expect(store.sql("TRUNCATE events")).rejects.toThrow("events are never deleted");
    await expect(store.sql("UPDATE events SET body = '{}'")).rejects.toThrow("a body can only be purged");
    await expect(store.sql("DELETE FROM append_keys")).rejects.toThrow("keys never change");
    await expect(store.sql("UPDATE append_keys SET stream = 'b'")).rejects.toThrow("keys never change");
    await store.sql("UPDATE events SET body = NULL WHERE version = 2");
    await using journal = await store.open();
    expect(await journal.verify()).toMatchObject({
      events: 2,
      damage: [{ kind: "body-altered", stream: "a", version: 2, message: expect.stringContaining("no deletion") }],
    });
    await expect(journal.read({ stream: "a", after: 1 })).rejects.toMatchObject({ code: "store.purged" });
  });

  test("a version beside it may read and write until a newer one says that it may not", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created] });
    await store.sql("UPDATE journal_state SET schema_version = schema_version + 1");
    {
      await using beside = await store.open();
      await beside.append({ stream: "a", author, events: [said("x")] });
    }
    await store.sql("UPDATE journal_state SET min_writer = schema_version");
    await expect(journal.append({ stream: "a", author, events: [said("y")] })).rejects.toMatchObject({
      code: "store.newer",
    });
    expect(await journal.read({ after: 0 })).toHaveLength(2);
    expect(await journal.refusal()).toMatchObject({ code: "store.newer" });
    await store.sql("UPDATE journal_state SET min_reader = schema_version");
    await expect(store.open()).rejects.toMatchObject({ code: "store.newer" });
  });

  test("an earlier schema is brought up to date by one of those who open it at once, and its events stay", async () => {
    await using store = await newStore();
    {
      await using journal = await store.open();
      await journal.append({ stream: "a", author, events: [created] });
    }
    await store.sql("DROP TABLE checkpoints, signing_keys; UPDATE journal_state SET schema_version = 1");
    const opened = await Promise.all(Array.from({ length: 4 }, () => store.open()));
    await using stack = new AsyncDisposableStack();
    for (const journal of opened) stack.use(journal);
    for (const journal of opened) await journal.append({ stream: "a", author, events: [said("x"), completed("t")] });
    // Each signs a moment later; whoever asks for a proof does not have to wait for its own.
    for (const journal of opened) await journal.verify();
    expect(await opened[0]?.verify()).toMatchObject({ events: 9, damage: [], missing: [] });
    expect(await store.sql("SELECT schema_version FROM journal_state")).toEqual([{ schema_version: NEWEST }]);
  });

  test("the witness of this machine misses what the server has lost, and every process refuses appends until the loss is accepted", async () => {
    await using store = await newStore();
    await using elsewhere = await newStore();
    await using other = await store.open({ home: elsewhere.home });
    {
      await using journal = await store.open();
      await journal.append({ stream: "a", author, events: [created, admitted("t"), completed("t")] });
      await journal.append({ stream: "a", author, events: [said("lost")] });
    }
    // As a standby that was behind, or a backup, has it.
    await store.sql(
      `ALTER TABLE events DISABLE TRIGGER USER; DELETE FROM events WHERE version = 4; DELETE FROM evidence WHERE position = 4; DELETE FROM evidence_words WHERE position = 4; ALTER TABLE events ENABLE TRIGGER USER`,
    );
    await using journal = await store.open();
    expect(journal.damage).toMatchObject({ kind: "tail-lost", by: "witness", stream: "a", version: 4, position: 4 });
    for (const one of [journal, other])
      await expect(one.append({ stream: "a", author, events: [said("y")] })).rejects.toMatchObject({
        code: "store.damaged",
      });
    expect(await journal.read({ after: 0 })).toHaveLength(3);
    const before = journal.incarnation;
    expect(await adoptStore(store.url)).toBe(before + 1);
    await using adopted = await store.open();
    expect(adopted).toMatchObject({ damage: undefined, incarnation: before + 1 });
    await adopted.append({ stream: "a", author, events: [said("z")] });
    // A cursor of before names events of others now.
    const signal = new AbortController().signal;
    await expect(
      adopted.tail({ after: 4, incarnation: before, signal })[Symbol.asyncIterator]().next(),
    ).rejects.toMatchObject({ code: "cursor.expired" });
    await expect(other.append({ stream: "a", author, events: [said("y")] })).rejects.toMatchObject({
      code: "store.damaged",
    });
  });

  test("a thread that is kept in memory is what the store holds, whoever adds to it, deletes it or restores it", async () => {
    await using store = await newStore();
    await using reader = await store.open();
    await using writer = await store.open();
    const texts = async (after = 0) =>
      (await reader.read({ stream: "a", after })).map(({ version, body }) => [version, body.type]);
    await writer.append({ stream: "a", author, events: [created] });
    expect(await texts()).toEqual([[1, "thread.created"]]);
    await writer.append({ stream: "a", author, events: [said("1"), said("2")] });
    await reader.append({ stream: "a", author, events: [completed("t")] });
    const all = [1, 2, 3, 4].map((version) => [
      version,
      ["thread.created", "item.completed", "item.completed", "turn.completed"][version - 1],
    ]);
    expect(await Promise.all([texts(), texts(2), texts(4), texts()])).toEqual([all, all.slice(2), [], all]);
    expect(await reader.read({ stream: "a", after: 0 })).toEqual(await writer.read({ stream: "a", after: 0 }));
    await store.sql(
      "ALTER TABLE events DISABLE TRIGGER USER; DELETE FROM events WHERE version = 4; ALTER TABLE events ENABLE TRIGGER USER",
    );
    expect(await texts()).toEqual(all.slice(0, 3));
    await writer.purge({ stream: "a", author, reason: "asked" });
    await expect(texts()).rejects.toMatchObject({ code: "store.purged" });
  });

  test("keeps no secret: not in the database, and not in what append returns", async () => {
    await using store = await newStore();
    const token = `ghp_${"Q7x".repeat(12)}`;
    const url = store.url.replace("heddle@", "heddle:password-4711@");
    await using journal = await store.open({ url });
    const { events } = await journal.append({ stream: "a", author, events: [said(`${token} and password-4711`)] });
    expect(events[0]?.body).toMatchObject({ item: { text: "[redacted:github-token] and [redacted:known-secret]" } });
    const rows = JSON.stringify(await store.sql("SELECT * FROM events"));
    expect(rows).not.toContain(token);
    expect(rows).not.toContain("password-4711");
  });

  test("takes what Postgres cannot hold in a column, and says it as it was said", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const name = { type: "thread.named", v: 1, name: "nul \u0000 in it" } as const;
    await journal.append({ stream: "a", author, events: [created, name] });
    expect(await journal.threads.get("a")).toMatchObject({ name: "nul \uFFFD in it" });
    expect((await journal.read({ stream: "a", after: 1 }))[0]?.body).toEqual(name);
    await journal.rebuildProjections();
    expect(await journal.threads.get("a")).toMatchObject({ name: "nul \uFFFD in it" });
  });

  test("each machine verifies what the others wrote, by what they signed, and finds what was rewritten with all its hashes", async () => {
    await using store = await newStore();
    await using elsewhere = await newStore();
    {
      await using one = await store.open();
      await one.append({ stream: "a", author, events: [created, admitted("t"), completed("t")] });
      await using two = await store.open({ home: elsewhere.home });
      await two.append({ stream: "b", author, events: [created, admitted("u"), completed("u")] });
    }
    for (const home of [store.home, elsewhere.home]) {
      await using journal = await store.open({ home });
      expect(await journal.verify()).toMatchObject({ events: 6, checkpoints: 2, damage: [], missing: [] });
    }
    await store.sql(`ALTER TABLE events DISABLE TRIGGER USER;
      UPDATE events SET hash = md5(hash) || md5(hash) WHERE stream = 'b' AND version = 3; ALTER TABLE events ENABLE TRIGGER USER`);
    await using journal = await store.open();
    const { damage } = await journal.verify();
    expect(damage.map(({ kind, stream }) => [kind, stream])).toContainEqual(["checkpoint-mismatch", "b"]);
  });

  test("a bundle of it is verified without it, and taken over by another store of either kind", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created, admitted("t"), said("words", "t"), completed("t")] });
    const lines: string[] = [];
    for await (const line of journal.exportLines([{ stream: "a" }])) lines.push(line);
    const report = await verifyExport(lines);
    expect(report).toMatchObject({ events: 4, damage: [], unsigned: [], isSealed: true });
    await using elsewhere = await newStore();
    for (const open of [() => elsewhere.open(), () => openSqlite({ home: elsewhere.home })]) {
      await using other = await open();
      const given = { home: elsewhere.home, by: author, trust: report.keyId } as const;
      const done = await importBundle(other, () => lines, given);
      expect(done).toMatchObject({ unread: 0 });
      expect(done.imported).toBeGreaterThan(0);
      expect(await importBundle(other, () => lines, given)).toMatchObject({ imported: 0, known: done.imported });
      expect(await other.verify()).toMatchObject({ damage: [] });
    }
  });

  test("an append that Postgres cannot take fails alone, and none of those that came with it", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const streams = ["a", "b\u0000", "c"];
    const results = await Promise.allSettled(
      streams.map((stream) => journal.append({ stream, author, events: [created] })),
    );
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await journal.verify()).toMatchObject({ events: 2, streams: 2, damage: [] });
  });

  test("a reader is told when the store under it is restored or taken over, and misses nothing in silence", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created] });
    const { signal } = new AbortController();
    const events = journal.tail({ after: 0, incarnation: journal.incarnation, signal })[Symbol.asyncIterator]();
    await events.next();
    const told = expect(events.next()).rejects.toMatchObject({ code: "cursor.expired" });
    await adoptStore(store.url);
    await told;
    await expect(journal.append({ stream: "a", author, events: [said("x")] })).rejects.toMatchObject({
      code: "store.failed",
    });
  });

  test("a purge that a process has left is finished by another", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created, said("secret words")] });
    await journal.purge({ stream: "a", author, reason: "asked" });
    await store.sql("INSERT INTO purges VALUES ('a', 3)");
    await using other = await store.open();
    await other.finishPurges();
    expect(await store.sql("SELECT * FROM purges")).toEqual([]);
    expect(JSON.stringify(await store.sql("SELECT body FROM events"))).not.toContain("secret words");
    expect(journal.notices).toMatchObject([{ kind: "purge-unsettled" }]);
  });
});

test("nothing of the driver is loaded by a store in SQLite", () => {
  const source = readFileSync(`${import.meta.dirname}/../open-journal.ts`, "utf8");
  expect(source).not.toMatch(/^import (?!type ).*postgres\//m);
  expect(source).toMatch(/await import\("\.\/postgres\/open\.ts"\)/);
});
