import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import path from "node:path";
import { expect, test } from "vitest";
import { created, said, testHome } from "../suite/journal.samples.ts";
import { createRedactor } from "../redaction/redact.ts";
import { openJournal } from "../sqlite/sqlite.ts";

const author = "system";
const LONG = "Plain words, and sk-proj-a1b2c3d4e5f6g7h8 in between. ".repeat(6_000);

test("12.11: a long append keeps its turn in its stream, and those of other streams overtake it", async () => {
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  const append = async (stream: string, text: string): Promise<number | undefined> =>
    (await journal.append({ stream, author, events: [said(text)] })).events[0]?.position;
  const calls = [append("a", LONG), append("a", "short"), append("a", LONG), append("b", "elsewhere")];
  expect(await Promise.all(calls)).toEqual([2, 3, 4, 1]);
  const events = await journal.read({ stream: "a", after: 0 });
  expect(events.map(({ version }) => version)).toEqual([1, 2, 3]);
  const body = said(LONG);
  expect(events[0]?.body).toEqual(createRedactor().body(body, JSON.stringify(body)));
  expect(events[1]?.body).toEqual(said("short"));
  expect((await journal.verify()).damage).toEqual([]);
});

test("12.11: the same key and a long content again are the first result, another content is refused", async () => {
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  const once = { stream: "a", author, key: "k", events: [said(LONG)] } as const;
  const [first, again] = await Promise.all([journal.append(once), journal.append(once)]);
  expect([first.isRepeat, again.isRepeat]).toEqual([false, true]);
  expect(again.events).toEqual(first.events);
  const other = journal.append({ ...once, events: [said(`${LONG}.`)] });
  await expect(other).rejects.toMatchObject({ code: "store.id-conflict" });
});

test("12.11: what is long is stored before a purge that was called after it, and when the journal closes", async () => {
  await using home = await testHome();
  const journal = await openJournal({ home: home.path });
  const begun = journal.append({ stream: "a", author, events: [created] });
  const long = journal.append({ stream: "a", author, events: [said(LONG)] });
  const purged = journal.purge({ stream: "a", author, reason: "asked" });
  const refused = expect(journal.append({ stream: "a", author, events: [said("late")] })).rejects.toMatchObject({
    code: "thread.not-found",
  });
  await Promise.all([begun, long]);
  expect((await purged).version).toBe(3);
  await refused;
  const last = journal.append({ stream: "b", author, events: [said(LONG)] });
  await journal[Symbol.asyncDispose]();
  expect((await last).events[0]?.version).toBe(1);
  using db = new DatabaseSync(path.join(home.path, "heddle.db"), { readOnly: true });
  const row = db.prepare("SELECT body, body_hash FROM events WHERE stream = 'b'").get();
  expect(row?.["body_hash"]).toBe(createHash("sha256").update(String(row?.["body"])).digest("hex"));
  expect(String(row?.["body"])).not.toContain("sk-proj");
});

test("12.11: a stream of long events is read whole and in order, also where they are not in memory", async () => {
  await using home = await testHome();
  {
    await using journal = await openJournal({ home: home.path });
    for (let count = 0; count < 4; count += 1) {
      await journal.append({ stream: "a", author, events: [said(LONG), said(`${count}`)] });
    }
  }
  await using journal = await openJournal({ home: home.path });
  const read = await journal.read({ stream: "a", after: 0 });
  expect(read.map(({ version }) => version)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(await journal.read({ stream: "a", after: 0 })).toEqual(read);
  expect(await journal.read({ stream: "a", after: 2, limit: 3 })).toEqual(read.slice(2, 5));
  expect(await journal.read({ after: 1, limit: 4 })).toEqual(read.slice(1, 5));
  await journal.append({ stream: "a", author, events: [said("more")] });
  expect((await journal.read({ stream: "a", after: 0 })).length).toBe(9);
});
