/**
 * Manifests on disk: a first line that says what follows and its hash, then one JSON array for each entry or change. Written
 * and read in slices. Who changes one later is found out by the hashes in its first line.
 */
import { createHash } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import {
  entryLine,
  type Change,
  type FrozenWork,
  type KeptTree,
  type Manifest,
  type RawPath,
  type TreeEntry,
} from "./manifest.ts";
import { sliced, type Slices } from "./slices.ts";
import { codeOf, damaged } from "./tree-errors.ts";

const NAME = "manifest";
export const FILES = "files";

const Head = z.strictObject({
  v: z.literal(1),
  what: z.enum(["tree", "work"]),
  /** Of what a verdict rests on. */
  sha256: z.string(),
  /** Of the lines after this one. */
  rows: z.string(),
  count: z.int(),
  bytes: z.number(),
  skipped: z.array(z.string()),
});
type Head = z.infer<typeof Head>;

const Entry = z.tuple([
  z.enum(["file", "link", "folder", "other"]),
  z.int(),
  z.int(),
  z.string().regex(/^-?\d+$/),
  z.string(),
  z.string().nullable(),
  z.tuple([z.number(), z.number(), z.number()]).nullable(),
]);
type EntryRow = z.infer<typeof Entry>;

const TreeRow = z.tuple([z.string(), Entry]);
const WorkRow = z.tuple([z.enum(["added", "changed", "removed"]), z.string(), Entry.nullable(), Entry.nullable()]);

export async function writeTree(
  dir: string,
  manifest: Manifest,
  options: { readonly skipped: readonly RawPath[]; readonly signal: AbortSignal },
): Promise<Pick<KeptTree, "sha256" | "bytes">> {
  const slices = sliced(options.signal);
  let bytes = 0;
  const file = new Rows(dir);
  const digest = createHash("sha256");
  for (const [path, entry] of manifest) {
    if (slices.isOverSoon()) await slices.rest();
    bytes += entry.size;
    digest.update(entryLine(path, entry));
    file.add([path, rowOf(entry)]);
  }
  const sha256 = digest.digest("hex");
  file.write({ v: 1, what: "tree", sha256, bytes, skipped: [...options.skipped] });
  return { sha256, bytes };
}

export async function writeWork(
  dir: string,
  changes: readonly Change[],
  signal: AbortSignal,
): Promise<Pick<FrozenWork, "sha256">> {
  const slices = sliced(signal);
  const file = new Rows(dir);
  for (const { how, path, now, before } of changes) {
    if (slices.isOverSoon()) await slices.rest();
    file.add([how, path, now === undefined ? null : rowOf(now), before === undefined ? null : rowOf(before)]);
  }
  const sha256 = hashOfChanges(changes);
  file.write({ v: 1, what: "work", sha256, bytes: 0, skipped: [] });
  return { sha256 };
}

/** undefined: there is none. `store.damaged` when it is not what was written. */
export async function readTree(dir: string): Promise<KeptTree | undefined> {
  const found = await readRows(dir, "tree");
  if (found === undefined) return undefined;
  const manifest = new Map<RawPath, TreeEntry>();
  const digest = createHash("sha256");
  for (const line of found.lines) {
    if (found.slices.isOverSoon()) await found.slices.rest();
    const [path, row] = parsed(TreeRow, line, dir);
    const entry = entryOf(row);
    manifest.set(path, entry);
    digest.update(entryLine(path, entry));
  }
  const { sha256, bytes, skipped } = found.head;
  if (digest.digest("hex") !== sha256) throw damaged(`the kept tree ${dir} is not the one that was kept`);
  return { folder: join(dir, FILES), manifest, sha256, bytes, skipped };
}

export async function readWork(dir: string): Promise<FrozenWork | undefined> {
  const found = await readRows(dir, "work");
  if (found === undefined) return undefined;
  const changes: Change[] = [];
  for (const line of found.lines) {
    if (found.slices.isOverSoon()) await found.slices.rest();
    const [how, path, now, before] = parsed(WorkRow, line, dir);
    changes.push({
      path,
      how,
      ...(now === null ? {} : { now: entryOf(now) }),
      ...(before === null ? {} : { before: entryOf(before) }),
    });
  }
  const { sha256 } = found.head;
  if (hashOfChanges(changes) !== sha256) throw damaged(`the frozen work ${dir} is not the one that was frozen`);
  return { folder: join(dir, FILES), changes, sha256 };
}

function hashOfChanges(changes: readonly Change[]): string {
  const digest = createHash("sha256");
  for (const { how, path, now, before } of changes) {
    digest.update(`${how} ${entryLine(path, now)}${entryLine(path, before)}`);
  }
  return digest.digest("hex");
}

/** Lines are gathered into pieces of some size, because each is a call. */
const PIECE_CHARACTERS = 256 * 1024;

class Rows {
  readonly #path: string;
  readonly #digest = createHash("sha256");
  readonly #pieces: string[] = [];
  #piece = "";
  #count = 0;

  constructor(dir: string) {
    this.#path = join(dir, NAME);
  }

  add(row: readonly unknown[]): void {
    this.#count += 1;
    this.#piece += `${JSON.stringify(row)}\n`;
    if (this.#piece.length > PIECE_CHARACTERS) this.#flush();
  }

  write(head: Omit<Head, "rows" | "count">): void {
    this.#flush();
    const whole: Head = { ...head, rows: this.#digest.digest("hex"), count: this.#count };
    const fd = openSync(this.#path, "wx", 0o600);
    try {
      for (const piece of [`${JSON.stringify(whole)}\n`, ...this.#pieces]) writeSync(fd, piece);
    } finally {
      closeSync(fd);
    }
  }

  #flush(): void {
    this.#digest.update(this.#piece);
    this.#pieces.push(this.#piece);
    this.#piece = "";
  }
}

async function readRows(
  dir: string,
  what: Head["what"],
): Promise<{ readonly head: Head; readonly lines: readonly string[]; readonly slices: Slices } | undefined> {
  const bytes = await readFile(join(dir, NAME)).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw error;
  });
  if (bytes === undefined) return undefined;
  const end = bytes.indexOf("\n") + 1;
  const head = parsed(Head, bytes.subarray(0, end).toString("utf8"), dir);
  const rows = bytes.subarray(end);
  if (head.what !== what || createHash("sha256").update(rows).digest("hex") !== head.rows) {
    throw damaged(`the manifest in ${dir} is not the one that was written`);
  }
  const lines = rows.toString("utf8").split("\n").slice(0, -1);
  if (lines.length !== head.count) throw damaged(`the manifest in ${dir} is not whole`);
  return { head, lines, slices: sliced(new AbortController().signal) };
}

function parsed<T>(schema: z.ZodType<T>, line: string, dir: string): T {
  try {
    return schema.parse(JSON.parse(line));
  } catch (cause) {
    throw damaged(`the manifest in ${dir} cannot be read`, cause);
  }
}

function rowOf({ kind, mode, size, mtimeNs, sha256, target, stamp }: TreeEntry): EntryRow {
  const from: EntryRow[6] = stamp === undefined ? null : [stamp.dev, stamp.ino, stamp.ctimeMs];
  return [kind, mode, size, String(mtimeNs), sha256, target ?? null, from];
}

function entryOf([kind, mode, size, mtimeNs, sha256, target, from]: EntryRow): TreeEntry {
  return {
    kind,
    mode,
    size,
    mtimeNs: BigInt(mtimeNs),
    sha256,
    ...(target === null ? {} : { target }),
    ...(from === null ? {} : { stamp: { dev: from[0], ino: from[1], ctimeMs: from[2] } }),
  };
}
