import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { EventBody } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import { examine } from "../evidence/examine.ts";
import type { Journal } from "../journal.ts";
import { openJournal } from "../sqlite/sqlite.ts";
import { admitted, completed, created, testHome } from "../suite/journal.samples.ts";
import { blobFiles, checkBlob, keepBlob, readBlob, removeBlob } from "./blob-files.ts";
import { blobsFolder } from "./blob-paths.ts";
import { collectBlobs, type CollectRule } from "./collect.ts";

const HOUR = 3_600_000;
const NOW = Date.now();

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** As the end of a command leaves it; `agoMs`: when. */
function keep(home: string, content: string, agoMs = 0): string {
  const folder = blobsFolder(home);
  mkdirSync(folder, { recursive: true });
  const file = join(folder, sha256(content));
  writeFileSync(file, content);
  utimesSync(file, (NOW - agoMs) / 1000, (NOW - agoMs) / 1000);
  return sha256(content);
}

const bring = (home: string, name: string, content: string): Promise<boolean> =>
  keepBlob(home, name, { pieces: [Buffer.from(content)], mtimeMs: NOW - HOUR });

const printed = (name: string, turnId: string): EventBody => ({
  type: "item.completed",
  v: 1,
  turnId,
  item: {
    type: "commandExecution",
    id: `i-${turnId}`,
    callId: "c",
    command: "make",
    cwd: "/w",
    status: "completed",
    output: "head … tail",
    outputBlob: name,
  },
});

async function named(journal: Journal, stream: string, name: string): Promise<void> {
  const events = [created, admitted(`t-${stream}`), printed(name, `t-${stream}`), completed(`t-${stream}`)];
  await journal.append({ stream, author: "system", events });
}

const collect = (journal: Journal, home: string, rule: CollectRule, isDryRun = false) =>
  collectBlobs(journal, { home, rule, by: "policy:outputs", nowMs: NOW, isDryRun });

describe("whole outputs", () => {
  test("are found by the entry that names them, and are read only as what their name says", async () => {
    await using home = await testHome();
    const name = keep(home.path, "all of it");
    await using journal = await openJournal({ home: home.path });
    await named(journal, "a", name);
    const { entries } = await journal.evidence.query({ ref: { type: "blob", id: name } });
    expect(entries).toMatchObject([{ stream: "a", type: "item.completed", claim: "step", refs: [{ id: name }] }]);
    expect(Buffer.concat(await all(readBlob(home.path, name))).toString()).toBe("all of it");
    writeFileSync(join(blobsFolder(home.path), name), "another");
    expect(await checkBlob(home.path, name)).toBe("altered");
    await expect(all(readBlob(home.path, name))).rejects.toMatchObject({ code: "store.damaged" });
    await expect(all(readBlob(home.path, "../keys"))).rejects.toMatchObject({ code: "evidence.not-found" });
  });

  test("that are brought are kept only under their own name", async () => {
    await using home = await testHome();
    expect(await bring(home.path, sha256("x"), "y")).toBe(false);
    expect(await bring(home.path, "../x", "x")).toBe(false);
    expect(await bring(home.path, sha256("x"), "x")).toBe(true);
    expect(readdirSync(blobsFolder(home.path))).toEqual([sha256("x")]);
    const [kept] = await all(blobFiles(home.path));
    expect(kept?.mtimeMs).toBeCloseTo(NOW - HOUR, -1);
  });

  test("go where nothing names them, after an hour in which somebody may; parts of dead processes after a day", async () => {
    await using home = await testHome();
    const kept = [keep(home.path, "named", 100 * HOUR), keep(home.path, "fresh")];
    const old = keep(home.path, "old", 2 * HOUR);
    for (const [name, agoMs] of [["new.part", HOUR] as const, ["dead.part", 25 * HOUR] as const]) {
      writeFileSync(join(blobsFolder(home.path), name), "half");
      utimesSync(join(blobsFolder(home.path), name), (NOW - agoMs) / 1000, (NOW - agoMs) / 1000);
    }
    await using journal = await openJournal({ home: home.path });
    await named(journal, "a", kept[0] ?? "");
    const wanted = [
      { sha256: "dead.part", bytes: 4, why: "unfinished", streams: [] },
      { sha256: old, bytes: 3, why: "unnamed", streams: [] },
    ];
    expect(await collect(journal, home.path, {}, true)).toEqual(wanted);
    expect(await collect(journal, home.path, {})).toEqual(wanted);
    expect(readdirSync(blobsFolder(home.path)).toSorted()).toEqual([...kept, "new.part"].toSorted());
    expect(await collect(journal, home.path, {})).toEqual([]);
  });

  test("beyond the owner's age and size go oldest first, and the record of every stream says so", async () => {
    await using home = await testHome();
    const [ancient, shared, young] = [
      keep(home.path, "aaaa", 50 * HOUR),
      keep(home.path, "bbbb", 3 * HOUR),
      keep(home.path, "cccc", HOUR),
    ];
    await using journal = await openJournal({ home: home.path });
    await named(journal, "a", ancient);
    await named(journal, "b", shared);
    await named(journal, "c", shared);
    await named(journal, "d", young);
    const done = await collect(journal, home.path, { maxAgeMs: 24 * HOUR, maxBytes: 5 });
    expect(done).toMatchObject([
      { sha256: ancient, why: "age", streams: ["a"] },
      { sha256: shared, why: "size", streams: ["b", "c"] },
    ]);
    const { entries } = await journal.evidence.query({ tags: ["collected"], order: "oldest" });
    expect(entries.map(({ stream, author, refs }) => [stream, author, refs[0]?.id])).toEqual([
      ["a", "policy:outputs", ancient],
      ["b", "policy:outputs", shared],
      ["c", "policy:outputs", shared],
    ]);
    expect(readdirSync(blobsFolder(home.path))).toEqual([young]);
    // What says that it is gone does not keep it when it comes again.
    keep(home.path, "aaaa", 2 * HOUR);
    expect(await journal.blobs.uses([ancient])).toMatchObject([{ stream: "a" }]);
  });

  test("that somebody writes again meanwhile stay: the new file is not the one that was looked at", async () => {
    await using home = await testHome();
    const name = keep(home.path, "twice", 5 * HOUR);
    const [seen] = await all(blobFiles(home.path));
    if (seen === undefined) throw new Error("nothing is kept");
    keep(home.path, "twice");
    expect(await removeBlob(home.path, seen)).toBe(false);
    expect(readdirSync(blobsFolder(home.path))).toEqual([name]);
    expect(await removeBlob(home.path, { name, mtimeMs: NOW + 1 })).toBe(true);
    expect(await removeBlob(home.path, seen)).toBe(false);
  });

  test("V10: of a purged thread go with it, unless another thread names them", async () => {
    await using home = await testHome();
    const [own, shared] = [keep(home.path, "own", HOUR), keep(home.path, "shared", HOUR)];
    await using journal = await openJournal({ home: home.path });
    await named(journal, "a", own);
    await named(journal, "b", shared);
    await named(journal, "c", shared);
    for (const stream of ["a", "b"]) await journal.purge({ stream, author: "user:owner", reason: "asked for" });
    expect(readdirSync(blobsFolder(home.path))).toEqual([shared]);
    await journal.purge({ stream: "c", author: "user:owner", reason: "asked for" });
    expect(readdirSync(blobsFolder(home.path))).toEqual([]);
    expect((await journal.verify()).damage).toEqual([]);
  });
});

test("Verify: blob_altered, blob_collected, artifact_missing: whole outputs are compared with the names on record", async () => {
  await using home = await testHome();
  const name = keep(home.path, "all of it", 100 * HOUR);
  await using journal = await openJournal({ home: home.path });
  await named(journal, "a", name);
  const found = async () => {
    const { levels, findings } = await examine(journal, { home: home.path, level: 5, walkers: 1 });
    expect(levels.at(-1)).toMatchObject({ level: 5, examined: 1 });
    return findings.map(({ code, weight, version }) => [code, weight, version]);
  };
  expect(await found()).toEqual([]);
  writeFileSync(join(blobsFolder(home.path), name), "all of IT");
  expect(await found()).toEqual([["blob_altered", "violation", 3]]);
  keep(home.path, "all of it", 100 * HOUR);
  expect(await collect(journal, home.path, { maxAgeMs: HOUR })).toHaveLength(1);
  expect(existsSync(join(blobsFolder(home.path), name))).toBe(false);
  expect(await found()).toEqual([["blob_collected", "warning", 3]]);
  // It was printed again since, and is gone without a word.
  const again = [admitted("t2"), printed(name, "t2"), completed("t2")];
  await journal.append({ stream: "a", author: "system", events: again });
  expect(await found()).toEqual([["artifact_missing", "unproven", 7]]);
});
