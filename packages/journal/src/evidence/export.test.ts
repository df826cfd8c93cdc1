import { createHash, createPublicKey, verify as verifySignature } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { EventBody } from "@heddle/protocol";
import type { ExportPart, Journal } from "../journal.ts";
import { admitted, completed, created, said, testHome } from "../suite/journal.samples.ts";
import { openJournal } from "../sqlite/sqlite.ts";
import { verifyExport } from "./verify-export.ts";

const author = "user:owner";

async function fill(journal: Journal): Promise<void> {
  await journal.append({ stream: "p", author, events: [created] });
  for (const turn of ["t1", "t2"]) {
    await journal.append({ stream: "p", author, events: [admitted(turn), said(`é 漢 😀 "${turn}"`), completed(turn)] });
  }
  const fork: EventBody = { ...fork4, forkedFrom: { threadId: "p", version: 4 } };
  await journal.append({ stream: "c", author, events: [fork] });
  await journal.append({ stream: "c", author, events: [admitted("t3"), said("own"), completed("t3")] });
}
const fork4 = { type: "thread.created", v: 1, workspace: "/w", origin: "exec" } as const;
const PARTS: readonly ExportPart[] = [{ stream: "p", upTo: 4 }, { stream: "c" }];

async function exported(home: string, parts = PARTS): Promise<string[]> {
  await using journal = await openJournal({ home });
  const lines: string[] = [];
  for await (const line of journal.exportLines(parts)) lines.push(line);
  return lines;
}

async function filled(home: string): Promise<string[]> {
  {
    await using journal = await openJournal({ home });
    await fill(journal);
  }
  return exported(home);
}

type Fields = Record<string, unknown>;
const parse = (line: string): Fields => JSON.parse(line);
const edit = (lines: readonly string[], index: number, change: Fields): string[] =>
  lines.with(index, `${JSON.stringify({ ...parse(lines[index] ?? ""), ...change })}\n`);
const at = (lines: readonly string[], kind: string, stream: string, version: number): number =>
  lines.findIndex((line) => {
    const fields = parse(line);
    return fields["kind"] === kind && fields["stream"] === stream && fields["version"] === version;
  });

/** Without what the second version added: the list of subjects, and the signature over all lines. */
function asFirstVersion(lines: readonly string[]): string[] {
  const { subjects: _subjects, ...header } = parse(lines[0] ?? "");
  const { sha256: _sha256, signature: _signature, ...end } = parse(lines.at(-1) ?? "");
  return [{ ...header, v: 1 }, ...lines.slice(1, -1).map(parse), end].map((line) => `${JSON.stringify(line)}\n`);
}

describe("an export", () => {
  test("of the first version of the format is still read", async () => {
    await using home = await testHome();
    const lines = asFirstVersion(await filled(home.path));
    expect(await verifyExport(lines)).toMatchObject({
      thread: "c",
      subjects: ["c"],
      events: 8,
      damage: [],
      unsigned: [],
    });
    expect((await verifyExport(lines.toSpliced(at(lines, "checkpoint", "p", 4), 1))).damage).toMatchObject([
      { kind: "tail-lost" },
    ]);
  });

  test("holds each stream up to where it was asked for, oldest first, and verifies by itself", async () => {
    await using home = await testHome();
    const lines = await filled(home.path);
    expect(lines.map((line) => Object.values(parse(line)).slice(0, 1)[0])).toEqual([
      "header",
      "stream",
      "checkpoint",
      "checkpoint",
      ...Array.from({ length: 4 }, () => "event"),
      "stream",
      "checkpoint",
      "checkpoint",
      ...Array.from({ length: 4 }, () => "event"),
      "end",
    ]);
    const report = await verifyExport(lines);
    expect(report).toEqual({
      thread: "c",
      subjects: ["c"],
      keyId: expect.stringMatching(/^[0-9a-f]{16}$/),
      publicKey: expect.stringContaining("PUBLIC KEY"),
      events: 8,
      streams: 2,
      checkpoints: 4,
      unsigned: [],
      isSealed: true,
      purged: 0,
      blobs: 0,
      blobFindings: [],
      damage: [],
      replay: expect.objectContaining({ events: 8, turns: 2, calls: 0 }),
    });
    // Lines without their newline, as most readers of files give them.
    expect(await verifyExport(lines.map((line) => line.trimEnd()))).toEqual(report);
  });

  test("can be verified with nothing but SHA-256, ed25519 and sorted JSON", async () => {
    await using home = await testHome();
    const lines = (await filled(home.path)).map(parse);
    const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
    const sorted = (fields: Fields): string =>
      JSON.stringify(Object.fromEntries(Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))));
    const publicKey = createPublicKey(String(lines[0]?.["publicKey"]));
    const hashes = new Map<string, unknown>();
    for (const { kind, body, hash, body_hash: bodyHash, prev_hash: prevHash, position: _p, ...rest } of lines) {
      if (kind !== "event") continue;
      const { stream, version } = rest;
      const before =
        version === 1 ? sha256(`heddle/1|${String(stream)}`) : hashes.get(`${String(stream)} ${Number(version) - 1}`);
      expect(prevHash).toBe(before);
      expect(sha256(String(body))).toBe(bodyHash);
      expect(sha256(sorted({ chain: 1, ...rest, bodyHash, prevHash }))).toBe(hash);
      hashes.set(`${String(stream)} ${String(version)}`, hash);
    }
    const signed = lines.filter(({ kind }) => kind === "checkpoint");
    expect(signed).toHaveLength(4);
    for (const { kind: _k, signature, ...head } of signed) {
      expect(hashes.get(`${String(head["stream"])} ${String(head["version"])}`)).toBe(head["hash"]);
      const text = Buffer.from(sorted({ checkpoint: 1, ...head }));
      expect(verifySignature(undefined, text, publicKey, Buffer.from(String(signature), "base64"))).toBe(true);
    }
  });

  test.each([
    ["a body", (lines: string[]) => edit(lines, at(lines, "event", "p", 3), { body: "{}" }), "body-altered", 3],
    [
      "a body taken out",
      (lines: string[]) => edit(lines, at(lines, "event", "p", 3), { body: null }),
      "body-altered",
      3,
    ],
    [
      "an author",
      (lines: string[]) => edit(lines, at(lines, "event", "p", 2), { author: "system" }),
      "event-altered",
      2,
    ],
    ["an event left out", (lines: string[]) => lines.toSpliced(at(lines, "event", "p", 2), 1), "version-gap", 3],
    ["the last event left out", (lines: string[]) => lines.toSpliced(at(lines, "event", "c", 4), 1), "tail-lost", 4],
    [
      "a checkpoint's hash",
      (lines: string[]) => edit(lines, at(lines, "checkpoint", "p", 4), { hash: "0".repeat(64) }),
      "checkpoint-forged",
      4,
    ],
    [
      "a checkpoint left out",
      (lines: string[]) => lines.toSpliced(at(lines, "checkpoint", "p", 4), 1),
      "file-corrupt",
      undefined,
    ],
    ["the end left out", (lines: string[]) => lines.slice(0, -1), "tail-lost", undefined],
    ["half a line", (lines: string[]) => lines.with(5, lines[5]?.slice(0, 40) ?? ""), "file-corrupt", undefined],
    [
      "a line of another kind",
      (lines: string[]) => lines.toSpliced(4, 0, '{"kind":"opinion"}\n'),
      "file-corrupt",
      undefined,
    ],
    ["lines after the end", (lines: string[]) => [...lines, lines[5] ?? ""], "file-corrupt", undefined],
    [
      "a stream cut together with its promise",
      (lines: string[]) => edit(lines.toSpliced(at(lines, "event", "p", 4), 1), 1, { lastVersion: 3 }),
      "tail-lost",
      4,
    ],
  ] as const)("with %s changed does not verify", async (_name, change, kind, version) => {
    await using home = await testHome();
    const lines = await filled(home.path);
    const { damage } = await verifyExport(change(lines));
    expect(damage[0]).toMatchObject({ kind, ...(version === undefined ? {} : { version }) });
  });

  test("of another home's key is signed by that key, and its id tells", async () => {
    await using home = await testHome();
    await using other = await testHome();
    const [lines, foreign] = [await filled(home.path), await filled(other.path)];
    expect((await verifyExport(lines)).keyId).not.toBe((await verifyExport(foreign)).keyId);
    const { damage } = await verifyExport(lines.with(0, foreign[0] ?? ""));
    expect(damage.map(({ kind }) => kind)).toEqual([
      ...Array.from({ length: 4 }, () => "checkpoint-forged"),
      "file-corrupt",
    ]);
  });

  test("of nothing, and text that is no export, do not verify", async () => {
    for (const lines of [[], ["hello"], ['{"kind":"header","format":"other","v":1}'], ["[]"], ["null"]]) {
      expect((await verifyExport(lines)).damage).not.toEqual([]);
    }
  });

  test("of a home without a key has no checkpoints and still verifies its chain", async () => {
    await using home = await testHome();
    await filled(home.path);
    rmSync(join(home.path, "keys"), { recursive: true });
    rmSync(join(home.path, "checkpoints"), { recursive: true });
    const report = await verifyExport(await exported(home.path));
    expect(report).toMatchObject({ keyId: undefined, events: 8, checkpoints: 0, damage: [] });
    expect(report.unsigned).toEqual([
      { stream: "p", signedTo: 0, lastVersion: 4 },
      { stream: "c", signedTo: 0, lastVersion: 4 },
    ]);
  });

  test("13: ends with a signature over the last event of each stream, also where none was due yet", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal);
    await journal.append({ stream: "c", author, events: [admitted("t4"), said("under way")] });
    const lines: string[] = [];
    for await (const line of journal.exportLines([{ stream: "p", upTo: 3 }, { stream: "c" }])) lines.push(line);
    expect(await verifyExport(lines)).toMatchObject({ events: 9, checkpoints: 5, unsigned: [], damage: [] });
  });

  test("13: says how far signatures reach, and names no key that has signed nothing in it", async () => {
    await using home = await testHome();
    const lines = asFirstVersion(await filled(home.path));
    const kept = (isKept: (fields: Fields) => boolean): string[] => {
      const rest = lines.filter((line) => parse(line)["kind"] !== "checkpoint" || isKept(parse(line)));
      const checkpoints = rest.filter((line) => parse(line)["kind"] === "checkpoint").length;
      return edit(rest, rest.length - 1, { checkpoints });
    };
    expect(await verifyExport(kept(() => false))).toMatchObject({ keyId: undefined, publicKey: undefined, damage: [] });
    const cut = await verifyExport(kept(({ stream, version }) => stream === "p" || version === 1));
    expect(cut).toMatchObject({ unsigned: [{ stream: "c", signedTo: 1, lastVersion: 4 }], damage: [] });
    expect(cut.keyId).toMatch(/^[0-9a-f]{16}$/);
    const other = await verifyExport(edit(lines, 0, { thread: "p" }));
    expect(other.damage).toMatchObject([{ kind: "file-corrupt", message: "its last stream is not that of p" }]);
  });

  test("ends where the stream ended when it began, however much is appended meanwhile", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal);
    const lines: string[] = [];
    for await (const line of journal.exportLines(PARTS)) {
      lines.push(line);
      await journal.append({ stream: "c", author, events: [said("more"), completed("more")] });
    }
    expect(await verifyExport(lines)).toMatchObject({ events: 8, damage: [] });
  });

  test("breaks off when the stream is purged under it", async () => {
    await using home = await testHome();
    await using journal = await openJournal({ home: home.path });
    await fill(journal);
    const lines: string[] = [];
    const reading = async (): Promise<void> => {
      for await (const line of journal.exportLines([{ stream: "c" }])) {
        if (lines.push(line) === 1) await journal.purge({ stream: "c", author, reason: "gone" });
      }
    };
    await expect(reading()).rejects.toMatchObject({ code: "store.purged" });
    expect((await verifyExport(lines)).damage).not.toEqual([]);
  });
});
