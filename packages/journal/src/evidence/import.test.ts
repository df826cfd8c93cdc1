import { existsSync, readdirSync } from "node:fs";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openJournal } from "../sqlite/sqlite.ts";
import { admitted, completed, created, said, testHome } from "../suite/journal.samples.ts";
import { importBundle } from "./import.ts";
import { knownKeysFile, readKnownKeys } from "./known-keys.ts";
import { verifyExport } from "./verify-export.ts";

const by = "user:owner";

/** A bundle of one thread as it is now; each call adds a note. */
async function bundleOf(home: string, text: string): Promise<readonly string[]> {
  await using journal = await openJournal({ home });
  const isNew = (await journal.version("a")) === 0;
  const turn = [created, admitted("t1"), said("it is cold", "t1"), completed("t1")];
  if (isNew) await journal.append({ stream: "a", author: "agent:embedded", events: turn });
  const note: EventBody = {
    type: "evidence.noted",
    v: 1,
    noteId: text,
    claim: "conclusion",
    text,
    refs: [],
    tags: ["tests"],
  };
  await journal.append({ stream: "a", author: by, events: [note] });
  const lines: string[] = [];
  for await (const line of journal.exportLines([{ stream: "a" }])) lines.push(line);
  return lines;
}

test("entries of another home are taken over once, from a known key, found only by who asks for them, and purged", async () => {
  await using there = await testHome();
  const lines = await bundleOf(there.path, "one");
  const { keyId = "" } = await verifyExport(lines);
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  const take = (bundle: readonly string[], trust?: string) =>
    importBundle(journal, () => bundle, { home: home.path, by, trust });
  await expect(take(lines)).rejects.toMatchObject({ code: "evidence.untrusted", details: { keyId } });
  await expect(take(lines, "0000")).rejects.toMatchObject({ code: "evidence.untrusted" });
  expect([existsSync(knownKeysFile(home.path)), await journal.position()]).toEqual([false, 0]);

  const stream = `import_${keyId}_a`;
  const first = await take(lines, keyId);
  expect(first).toMatchObject({ keyId, streams: [stream], known: 0, unread: 0, outputs: 0 });
  expect(first.imported).toBeGreaterThan(2);
  expect(readKnownKeys(home.path)).toHaveLength(1);
  expect(await take(lines)).toMatchObject({ imported: 0, known: first.imported, streams: [stream] });
  const later = await bundleOf(there.path, "two");
  expect(await take(later)).toMatchObject({ imported: 1, known: first.imported });

  const { evidence } = journal;
  expect(await evidence.count({})).toBe(0);
  expect(await evidence.count({ origin: "any" })).toBe(first.imported + 1);
  expect(await evidence.count({ thread: stream })).toBe(first.imported + 1);
  const { entries } = await evidence.query({ text: "two", origin: "imported" });
  expect(entries).toMatchObject([
    {
      stream,
      author: by,
      type: "evidence.imported",
      claim: "conclusion",
      tags: ["tests", "imported"],
      imported: { keyId, stream: "a", author: by, type: "evidence.noted" },
    },
  ]);
  expect(entries[0]).not.toHaveProperty("thread");
  const byAgent = { ref: { type: "author", id: "agent:embedded" }, origin: "imported" } as const;
  expect(await evidence.count(byAgent)).toBeGreaterThan(0);
  expect(await journal.threads.list({ limit: 9 })).toEqual([]);

  await journal.purge({ stream, author: by, reason: "asked for" });
  expect(await evidence.count({ origin: "any" })).toBe(0);
  expect((await journal.replay()).findings).toEqual([]);
  expect((await journal.verify()).damage).toEqual([]);
  await expect(journal.purge({ stream, author: by, reason: "again" })).rejects.toMatchObject({
    code: "evidence.not-found",
  });
  expect(await take(lines)).toMatchObject({ imported: first.imported, streams: [`${stream}~1`] });
});

test("what was changed, cut or not signed to its end is refused, and nothing of it stays", async () => {
  await using there = await testHome();
  const lines = await bundleOf(there.path, "one");
  const { keyId = "" } = await verifyExport(lines);
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  const cases: readonly (readonly [what: string, bundle: readonly string[], code: string])[] = [
    ["a word", lines.map((line) => line.replace("it is cold", "it is warm")), "evidence.tampered"],
    ["no end", lines.slice(0, -1), "evidence.tampered"],
    ["an event left out", lines.toSpliced(4, 1), "evidence.tampered"],
    ["another file", ["hello"], "usage.invalid"],
  ];
  for (const [what, bundle, code] of cases)
    await expect(
      importBundle(journal, () => bundle, { home: home.path, by, trust: keyId }),
      what,
    ).rejects.toMatchObject({ code });
  expect(await journal.position()).toBe(0);
  expect(readdirSync(home.path)).not.toContain("known-keys");
});

test("a bundle that was cut at an earlier signature and called one of the first format is not imported", async () => {
  await using there = await testHome();
  const lines = await bundleOf(there.path, "one");
  const { keyId = "" } = await verifyExport(lines);
  const rows = lines.map((line): Record<string, unknown> => JSON.parse(line));
  const [header = {}] = rows;
  // The turn has ended there, so that a signature reaches as far.
  const last = 4;
  const kept = rows.slice(1, -1).flatMap((row) => {
    if (row["kind"] === "stream") return [{ ...row, lastVersion: last }];
    return Number(row["version"]) <= last ? [row] : [];
  });
  const { subjects: _subjects, ...first } = header;
  const countOf = (kind: string) => kept.filter((row) => row["kind"] === kind).length;
  const end = { kind: "end", events: countOf("event"), checkpoints: countOf("checkpoint") };
  const cut = [{ ...first, v: 1 }, ...kept, end].map((row) => `${JSON.stringify(row)}\n`);
  expect(await verifyExport(cut)).toMatchObject({ events: last, damage: [], unsigned: [], isSealed: false });
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  const taken = importBundle(journal, () => cut, { home: home.path, by, trust: keyId });
  await expect(taken).rejects.toMatchObject({ code: "evidence.unproven" });
  expect(readKnownKeys(home.path)).toEqual([]);
});
