import { rmSync, writeFileSync, readFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Envelope } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import { storeManifest, takeManifest } from "../manifests/manifest.ts";
import { genesisOf, hashOf as linkHash, sha256 } from "../record/chain.ts";
import { toLink } from "../record/rows.ts";
import type { Level } from "../replay/findings.ts";
import { openJournal } from "../sqlite/sqlite.ts";
import {
  authorOf,
  bodyOfStep,
  codeIn,
  EDIT,
  EXPLORE,
  hashOf,
  ran,
  turnIn,
  type Step,
} from "../suite/envelope.samples.ts";
import { admitted, completed, created, said, testHome } from "../suite/journal.samples.ts";
import { examine, nothingExamined, resultOf, type Examination } from "./examine.ts";

const author = "system";
const { signal } = new AbortController();

async function put(journal: Journal, stream: string, steps: readonly Step[]): Promise<void> {
  for (const step of steps) await journal.append({ stream, author: authorOf(step), events: [bodyOfStep(step)] });
}

/** Thirteen events in "a", with checkpoints at 1, 4 and 7, four in "b". */
async function fill(home: string): Promise<void> {
  await using journal = await openJournal({ home });
  await journal.append({ stream: "a", author, events: [created] });
  for (const turn of ["t1", "t2"])
    await journal.append({ stream: "a", author, events: [admitted(turn), said(turn, turn), completed(turn)] });
  for (let nth = 0; nth < 6; nth += 1)
    await journal.append({ stream: "a", author, events: [{ type: "thread.named", v: 1, name: `n${nth}` }] });
  await journal.append({ stream: "b", author, events: [created, admitted("t3"), said("x", "t3"), completed("t3")] });
}

/** As somebody would who has the file and knows SQL. */
function open(home: string): DatabaseSync {
  const db = new DatabaseSync(join(home, "heddle.db"));
  for (const row of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all())
    db.exec(`DROP TRIGGER ${String(row["name"])}`);
  return db;
}

async function examined(home: string, level: Level = 5, streams?: readonly string[]): Promise<Examination> {
  await using journal = await openJournal({ home });
  return await examine(journal, { home, level, streams, walkers: 1 });
}

const found = ({ findings }: Examination) => findings.map(({ code, stream, version }) => [code, stream, version]);

/** Hashes a stream anew, from the first event on, as a forger would. */
function rehash(db: DatabaseSync, stream: string, change: (body: string) => string): void {
  let prevHash = genesisOf(stream);
  for (const row of db.prepare("SELECT * FROM events WHERE stream = ? ORDER BY version").all(stream)) {
    const body = change(String(row["body"]));
    const hash = linkHash({ ...toLink(row), bodyHash: sha256(body), prevHash });
    db.prepare("UPDATE events SET body = ?, body_hash = ?, prev_hash = ?, hash = ? WHERE position = ?").run(
      body,
      sha256(body),
      prevHash,
      hash,
      Number(row["position"]),
    );
    prevHash = hash;
  }
}

describe("levels 1 and 2", () => {
  test("each level says what it examined, and a clean record has no finding", async () => {
    await using home = await testHome();
    await fill(home.path);
    const { levels, findings } = await examined(home.path);
    expect(findings).toEqual([]);
    expect(levels.map(({ level, examined: count }) => [level, count])).toEqual([
      [1, 17],
      [2, 14],
      [3, 17],
      [4, 3],
      [5, 0],
    ]);
    expect((await examined(home.path, 2)).levels).toHaveLength(2);
    expect((await examined(home.path, 3, ["b"])).levels.at(-1)).toMatchObject({ level: 3, examined: 4 });
  });

  test.each<readonly [name: string, stream: string | undefined, version: number | undefined, sql: string]>([
    ["Verify: gap", "a", 10, "DELETE FROM events WHERE stream = 'a' AND version = 9"],
    ["Verify: broken_link", "a", 9, "UPDATE events SET prev_hash = hash WHERE stream = 'a' AND version = 9"],
    ["Verify: entry_altered", "a", 9, "UPDATE events SET author = 'user' WHERE stream = 'a' AND version = 9"],
    [
      "Verify: body_altered",
      "a",
      9,
      `UPDATE events SET body = replace(body, 'n1', 'm1') WHERE stream = 'a' AND version = 9`,
    ],
    ["Verify: body_altered", "a", 9, "UPDATE events SET body = NULL WHERE stream = 'a' AND version = 9"],
    ["Verify: head_mismatch", "a", 13, "DELETE FROM events WHERE position >= 13"],
    ["Verify: truncated_before_checkpoint", "b", 4, "DELETE FROM events WHERE stream = 'b'"],
  ])("%s in %s at event %s", async (name, stream, version, sql) => {
    await using home = await testHome();
    await fill(home.path);
    {
      using db = open(home.path);
      db.exec(sql);
    }
    const report = await examined(home.path);
    expect(found(report)).toContainEqual([codeIn(name), stream, version]);
    expect(resultOf(report.findings)).toBe("tampered");
  });

  test("Verify: file_corrupt: a database file that is damaged is found, and with it that acknowledged events are missing", async () => {
    await using home = await testHome();
    await fill(home.path);
    const file = join(home.path, "heddle.db");
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(0xa5, 0, 64));
    const report = await examined(home.path);
    const codes = new Set(report.findings.map(({ code }) => code));
    expect(codes).toEqual(new Set(["file_corrupt", "head_mismatch", "truncated_before_checkpoint"]));
    expect(resultOf(report.findings)).toBe("tampered");
  });

  test("Verify: rewritten_before_checkpoint, truncated_before_checkpoint, witness_missing: a cut tail whose witness was cut too, and a chain that was hashed anew", async () => {
    await using home = await testHome();
    await fill(home.path);
    {
      using db = open(home.path);
      rehash(db, "a", (body) => body.replace('"t2"', '"t9"'));
      db.exec("DELETE FROM events WHERE stream = 'b' AND version > 1");
    }
    rmSync(join(home.path, "witness.log"));
    expect(found(await examined(home.path, 2))).toEqual([
      ["rewritten_before_checkpoint", "a", 7],
      ["truncated_before_checkpoint", "b", 4],
      ["witness_missing", undefined, undefined],
    ]);
  });

  test("Verify: head_mismatch: an acknowledged event that was replaced after the last checkpoint", async () => {
    await using home = await testHome();
    await fill(home.path);
    {
      using db = open(home.path);
      rehash(db, "a", (body) => body.replace("n5", "n6"));
    }
    expect(found(await examined(home.path, 2))).toEqual([["head_mismatch", "a", 13]]);
  });

  test("Verify: checkpoint_forged, checkpoint_missing, key_missing: forged and missing checkpoints, and a key that is no key", async () => {
    await using home = await testHome();
    await fill(home.path);
    const file = join(home.path, "checkpoints", "a.jsonl");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace('"version":7', '"version":6'));
    expect(found(await examined(home.path))).toContainEqual(["checkpoint_forged", "a", 6]);
    writeFileSync(file, `${text.split("\n")[0]}\n`);
    const missing = await examined(home.path);
    expect(found(missing)).toEqual([["checkpoint_missing", "a", undefined]]);
    expect(resultOf(missing.findings)).toBe("cannotVerify");
    writeFileSync(file, text);
    for (const name of ["journal.key", "journal.pub"]) writeFileSync(join(home.path, "keys", name), "nothing");
    expect(found(await examined(home.path))).toEqual([["key_missing", undefined, undefined]]);
  });

  test("V10: Verify: body_purged: what the owner purged is a warning", async () => {
    await using home = await testHome();
    await fill(home.path);
    {
      await using journal = await openJournal({ home: home.path });
      await journal.purge({ stream: "b", author, reason: "asked for" });
    }
    const report = await examined(home.path);
    expect(report.findings).toMatchObject([{ code: "body_purged", weight: "warning" }]);
    expect(resultOf(report.findings)).toBe("clean");
  });

  test("Verify: nothing_to_verify: nothing examined is a failure: an empty record, and a level that found nothing to look at", async () => {
    await using home = await testHome();
    const empty = await examined(home.path);
    expect(nothingExamined(empty.levels, undefined)).toMatchObject([{ code: "nothing_to_verify", level: 1 }]);
    await fill(home.path);
    const { levels } = await examined(home.path);
    expect(nothingExamined(levels, undefined)).toEqual([]);
    expect(nothingExamined(levels, 4)).toEqual([]);
    const none = nothingExamined(levels, 5);
    expect(none).toMatchObject([{ code: "nothing_to_verify", level: 5, weight: "unproven" }]);
  });
});

/** All of them take a while; each column of each event is changed in any case. */
const EVERY = process.env["HEDDLE_E2E_FULL"] === "1" ? 1 : 7;

test("Verify: a changed byte of any column of any event is found (every 7th byte of a text by default, all of them with HEDDLE_E2E_FULL=1)", async () => {
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  await put(journal, "a", turnIn(EXPLORE, ...ran({ tool: "bash", args: { command: "ls # 日本" } })));
  using db = open(home.path);
  const columns = db.prepare("SELECT name, type FROM pragma_table_info('events')").all();
  const rows = db.prepare("SELECT * FROM events").all();
  const flips = new Map<string, number>();
  for (const row of rows) {
    const position = Number(row["position"]);
    for (const { name, type } of columns) {
      const column = String(name);
      const isNumber = type === "INTEGER";
      const put = db.prepare(
        `UPDATE OR IGNORE events SET ${column} = ${isNumber ? "?" : "CAST(? AS TEXT)"} WHERE position = ?`,
      );
      for (const value of isNumber ? flippedNumbers(Number(row[column])) : flipped(String(row[column]))) {
        const is = column === "position" ? BigInt(String(value)) : position;
        // The position or the version of another event: a store holds none twice.
        if (put.run(value, position).changes === 0) continue;
        const { damage } = await journal.verify(undefined, { walkers: 1 });
        expect(damage.length, `${column} of event ${position} as ${String(value)}`).toBeGreaterThan(0);
        expect(put.run(row[column] ?? null, is).changes).toBe(1);
        flips.set(column, (flips.get(column) ?? 0) + 1);
      }
    }
  }
  expect([...flips.keys()]).toEqual(columns.map(({ name }) => name));
  for (const [column, times] of flips) expect(times, column).toBeGreaterThanOrEqual(rows.length);
  expect(await journal.verify(undefined, { walkers: 1 })).toMatchObject({ events: 6, damage: [] });
});

function flipped(text: string): readonly Uint8Array[] {
  const bytes = Buffer.from(text);
  const all: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += EVERY) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    all.push(changed);
  }
  return all;
}

/** As SQLite keeps a number: eight bytes. */
function flippedNumbers(number: number): readonly bigint[] {
  return Array.from({ length: 8 }, (_, byte) => BigInt.asIntN(64, BigInt(number) ^ (1n << BigInt(8 * byte))));
}

describe("levels 3 and 4 in a store", () => {
  test("Verify: tool_outside_envelope: a call that a broken dispatch let through is found, in all of the record and in its thread", async () => {
    await using home = await testHome();
    await fill(home.path);
    {
      await using journal = await openJournal({ home: home.path });
      const steps = turnIn(EXPLORE, ...ran({ tool: "write", args: { file_path: "/w/a", content: "x" } }));
      await put(
        journal,
        "c",
        steps.map((step) => step),
      );
    }
    for (const streams of [undefined, ["c"]]) {
      const report = await examined(home.path, 4, streams);
      expect(found(report)).toEqual([
        ["tool_outside_envelope", "c", 4],
        ["tool_outside_envelope", "c", 4],
        ["path_outside_envelope", "c", 4],
      ]);
      expect(resultOf(report.findings)).toBe("violation");
    }
    expect((await examined(home.path, 3)).findings).toEqual([]);
  });

  test("a turn that has not ended is named as running", async () => {
    await using home = await testHome();
    {
      await using journal = await openJournal({ home: home.path });
      await put(journal, "c", turnIn(EXPLORE).slice(0, -1));
    }
    expect(await examined(home.path)).toMatchObject({ running: ["c"], findings: [] });
  });
});

describe("level 5", () => {
  /** A thread that enters an envelope, does something, and leaves it. */
  async function inEnvelope(
    home: string,
    envelope: Envelope,
    { steps = [], change }: { readonly steps?: readonly Step[]; readonly change: (workspace: string) => void },
  ): Promise<Examination> {
    const workspace = join(home, "..", "work");
    mkdirSync(join(workspace, "src"), { recursive: true });
    writeFileSync(join(workspace, "src", "a.txt"), "one");
    const list = async () => storeManifest(home, await takeManifest([workspace], { signal }));
    await using journal = await openJournal({ home });
    const spec: Envelope = { ...envelope, manifest: true, writeRoots: envelope.writeRoots.map(() => workspace) };
    const hash = hashOf(spec);
    const common = { v: 1, duringTurn: "t1", cause: "start", envelopeHash: hash };
    const before = await list();
    change(workspace);
    const after = await list();
    await put(journal, "e", [
      ["user:owner", { type: "thread.created", v: 1, workspace, origin: "exec" }],
      [
        "system",
        { type: "envelope.entered", ...common, envelope: spec, sandboxLevel: "none", depth: 0, manifest: before },
      ],
      ...turnIn(spec, ...steps).slice(1),
      ["system", { type: "envelope.left", ...common, cause: "end", calls: steps.length / 2, manifest: after }],
    ]);
    return await examine(journal, { home, level: 5 });
  }
  const writes = (workspace: string): void => writeFileSync(join(workspace, "src", "a.txt"), "two");
  const edit = ran({ tool: "edit", args: { file_path: "src/a.txt" } });

  test("a file that a recorded call wrote is explained, and so is any file once a command ran", async () => {
    for (const steps of [edit, ran({ tool: "bash", args: { command: "make" } })]) {
      await using home = await testHome();
      const { levels, findings } = await inEnvelope(home.path, EDIT, { steps, change: writes });
      expect(findings).toEqual([]);
      expect(levels.at(-1)).toMatchObject({ level: 5, examined: 1 });
    }
  });

  test("Verify: unexplained_change: a file changed behind the harness's back is found: no call, another file, or no folder that may be written", async () => {
    const other = (workspace: string): void => writeFileSync(join(workspace, "b.txt"), "new");
    for (const [envelope, steps, change, path] of [
      [EDIT, [], writes, "src/a.txt"],
      [EDIT, edit, other, "b.txt"],
      [EXPLORE, ran({ tool: "bash" }), writes, "src/a.txt"],
    ] as const) {
      await using home = await testHome();
      const { findings } = await inEnvelope(home.path, envelope, { steps, change });
      expect(findings).toMatchObject([{ code: "unexplained_change", message: expect.stringContaining(path) }]);
      expect(resultOf(findings)).toBe("violation");
    }
  });

  test("Verify: artifact_missing: a list of files that is gone or was changed is missing evidence", async () => {
    await using home = await testHome();
    await inEnvelope(home.path, EDIT, { steps: edit, change: writes });
    rmSync(join(home.path, "manifests"), { recursive: true });
    const report = await examined(home.path);
    expect(found(report)).toEqual([
      ["artifact_missing", "e", 2],
      ["artifact_missing", "e", 2],
    ]);
    expect(resultOf(report.findings)).toBe("cannotVerify");
  });

  test("a change between leaving one envelope and entering the next is found", async () => {
    await using home = await testHome();
    await inEnvelope(home.path, EDIT, { steps: edit, change: writes });
    const workspace = join(home.path, "..", "work");
    writeFileSync(join(workspace, "between.txt"), "x");
    const manifest = await storeManifest(home.path, await takeManifest([workspace], { signal }));
    {
      await using journal = await openJournal({ home: home.path });
      const spec: Envelope = { ...EXPLORE, manifest: true };
      await put(journal, "e", [
        [
          "system",
          {
            type: "envelope.entered",
            v: 1,
            cause: "settings",
            envelope: spec,
            envelopeHash: hashOf(spec),
            sandboxLevel: "none",
            depth: 0,
            manifest,
          },
        ],
      ]);
    }
    expect((await examined(home.path)).findings).toMatchObject([
      { code: "unexplained_change", message: expect.stringContaining("between.txt") },
    ]);
  });
});
