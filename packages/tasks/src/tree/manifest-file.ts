/**
 * Manifests on disk: a first line that says what follows and its hash, then lines of up to a thousand entries or changes, each
 * line a JSON array. Written and read in slices, and on the disk for good when it returns. Who changes one later is found out
 * by the hashes in its first line.
 */
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, openSync } from "node:fs";
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
  type TreeKind,
} from "./manifest.ts";
import { sliced } from "./slices.ts";
import { writeAll } from "./take-entry.ts";
import { codeOf, damaged } from "./tree-errors.ts";

export const MANIFEST = "manifest";
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
  /** Of the workspace itself. */
  rootMode: z.int().optional(),
  /** Path and inode of files that had names outside of it too. */
  linkedOutside: z.array(z.tuple([z.string(), z.number()])).optional(),
  /** Of the work: those of them that are not as they were. */
  wroteOutside: z.array(z.string()).optional(),
});
type Head = z.infer<typeof Head>;

/** kind, mode, size, mtimeNs, sha256, target, stamp */
type EntryRow = readonly [
  TreeKind,
  number,
  number,
  string,
  string,
  RawPath | null,
  readonly [number, number, number] | null,
];

export async function writeTree(
  dir: string,
  manifest: Manifest,
  options: Pick<KeptTree, "skipped" | "rootMode" | "linkedOutside"> & { readonly signal: AbortSignal },
): Promise<Pick<KeptTree, "sha256" | "bytes">> {
  const slices = sliced(options.signal);
  let bytes = 0;
  const file = new Rows(dir);
  const digest = new LineDigest();
  for (const [path, entry] of manifest) {
    if (slices.isOverSoon()) await slices.rest();
    bytes += entry.size;
    digest.add(entryLine(path, entry));
    file.add([path, rowOf(entry)]);
  }
  const sha256 = digest.end();
  const { rootMode, linkedOutside } = options;
  const root = {
    ...(rootMode === undefined ? {} : { rootMode }),
    ...(linkedOutside === undefined ? {} : { linkedOutside: [...linkedOutside] }),
  };
  file.write({ v: 1, what: "tree", sha256, bytes, skipped: [...options.skipped], ...root });
  return { sha256, bytes };
}

export async function writeWork(
  dir: string,
  { changes, wroteOutside, touched = [] }: Pick<FrozenWork, "changes" | "wroteOutside" | "touched">,
  signal: AbortSignal,
): Promise<Pick<FrozenWork, "sha256">> {
  const slices = sliced(signal);
  const file = new Rows(dir);
  for (const { how, path, now, before, isLeftOut } of changes) {
    if (slices.isOverSoon()) await slices.rest();
    const entries = [now === undefined ? null : rowOf(now), before === undefined ? null : rowOf(before)];
    file.add([how, path, ...entries, isLeftOut === true]);
  }
  for (const { path, now, before } of touched) {
    if (slices.isOverSoon()) await slices.rest();
    if (now !== undefined && before !== undefined) file.add(["touched", path, rowOf(now), rowOf(before), false]);
  }
  const sha256 = hashOfChanges(changes);
  const outside = wroteOutside === undefined ? {} : { wroteOutside: [...wroteOutside] };
  file.write({ v: 1, what: "work", sha256, bytes: 0, skipped: [], ...outside });
  return { sha256 };
}

/** undefined: there is none. `store.damaged` when it is not what was written. */
export async function readTree(dir: string): Promise<KeptTree | undefined> {
  const manifest = new Map<RawPath, TreeEntry>();
  const digest = new LineDigest();
  const head = await readRows(dir, "tree", (row) => {
    const path = textOf(row[0]);
    const entry = entryOf(row[1]);
    manifest.set(path, entry);
    digest.add(entryLine(path, entry));
  });
  if (head === undefined) return undefined;
  const { sha256, bytes, skipped, rootMode, linkedOutside } = head;
  if (digest.end() !== sha256) throw damaged(`the kept tree ${dir} is not the one that was kept`);
  return {
    folder: join(dir, FILES),
    manifest,
    sha256,
    bytes,
    skipped,
    ...(rootMode === undefined ? {} : { rootMode }),
    ...(linkedOutside === undefined ? {} : { linkedOutside: new Map(linkedOutside) }),
  };
}

export async function readWork(dir: string): Promise<FrozenWork | undefined> {
  const changes: Change[] = [];
  const touched: Change[] = [];
  const head = await readRows(dir, "work", ([how, path, now, before, isLeftOut]) => {
    if (how === "touched") {
      touched.push({ path: textOf(path), how: "changed", now: entryOf(now), before: entryOf(before) });
      return;
    }
    if (how !== "added" && how !== "changed" && how !== "removed") throw new Error("no such change");
    changes.push({
      path: textOf(path),
      how,
      ...(now === null ? {} : { now: entryOf(now) }),
      ...(before === null ? {} : { before: entryOf(before) }),
      ...(isLeftOut === true ? { isLeftOut } : {}),
    });
  });
  if (head === undefined) return undefined;
  const { sha256, wroteOutside } = head;
  if (hashOfChanges(changes) !== sha256) throw damaged(`the frozen work ${dir} is not the one that was frozen`);
  const outside = wroteOutside === undefined ? {} : { wroteOutside };
  return { folder: join(dir, FILES), changes, sha256, ...outside, ...(touched.length === 0 ? {} : { touched }) };
}

function hashOfChanges(changes: readonly Change[]): string {
  const digest = new LineDigest();
  for (const { how, path, now, before } of changes) {
    digest.add(`${how} ${entryLine(path, now)}${entryLine(path, before)}`);
  }
  return digest.end();
}

/** Each update of a hash is a call, which costs more than the few bytes of a line. */
const PIECE_CHARACTERS = 64 * 1024;

class LineDigest {
  readonly #digest = createHash("sha256");
  #piece = "";

  add(line: string): void {
    this.#piece += line;
    if (this.#piece.length < PIECE_CHARACTERS) return;
    this.#digest.update(this.#piece);
    this.#piece = "";
  }

  end(): string {
    return this.#digest.update(this.#piece).digest("hex");
  }
}

/** One parse of some milliseconds at the most. */
const LINE_ROWS = 1_000;

class Rows {
  readonly #path: string;
  readonly #digest = createHash("sha256");
  readonly #lines: Buffer[] = [];
  #rows: unknown[] = [];
  #count = 0;

  constructor(dir: string) {
    this.#path = join(dir, MANIFEST);
  }

  add(row: readonly unknown[]): void {
    this.#count += 1;
    this.#rows.push(row);
    if (this.#rows.length === LINE_ROWS) this.#flush();
  }

  write(head: Omit<Head, "rows" | "count">): void {
    if (this.#rows.length > 0) this.#flush();
    const whole: Head = { ...head, rows: this.#digest.digest("hex"), count: this.#count };
    const fd = openSync(this.#path, "wx", 0o600);
    try {
      let position = 0;
      for (const line of [Buffer.from(`${JSON.stringify(whole)}\n`), ...this.#lines]) {
        writeAll(fd, line, position);
        position += line.length;
      }
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  #flush(): void {
    const line = Buffer.from(`${JSON.stringify(this.#rows)}\n`);
    this.#digest.update(line);
    this.#lines.push(line);
    this.#rows = [];
  }
}

async function readRows(
  dir: string,
  what: Head["what"],
  each: (row: readonly unknown[]) => void,
): Promise<Head | undefined> {
  const bytes = await readFile(join(dir, MANIFEST)).catch((error: unknown) => {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw error;
  });
  if (bytes === undefined) return undefined;
  const slices = sliced(new AbortController().signal);
  let start = bytes.indexOf("\n") + 1;
  const head = understood(dir, () => Head.parse(JSON.parse(bytes.toString("utf8", 0, start))));
  if (head.what !== what || createHash("sha256").update(bytes.subarray(start)).digest("hex") !== head.rows) {
    throw damaged(`the manifest in ${dir} is not the one that was written`);
  }
  let count = 0;
  for (let end = bytes.indexOf("\n", start); end !== -1; end = bytes.indexOf("\n", start)) {
    if (slices.isOver()) await slices.rest();
    understood(dir, () => {
      for (const row of listOf(JSON.parse(bytes.toString("utf8", start, end)))) {
        each(listOf(row));
        count += 1;
      }
    });
    start = end + 1;
  }
  if (count !== head.count) throw damaged(`the manifest in ${dir} is not whole`);
  return head;
}

function understood<T>(dir: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw damaged(`the manifest in ${dir} cannot be read`, cause);
  }
}

function rowOf({ kind, mode, size, mtimeNs, sha256, target, stamp }: TreeEntry): EntryRow {
  const from: EntryRow[6] = stamp === undefined ? null : [stamp.dev, stamp.ino, stamp.ctimeMs];
  return [kind, mode, size, String(mtimeNs), sha256, target ?? null, from];
}

/** By hand: a schema takes longer for fifty thousand of them than a room may take to open. */
function entryOf(row: unknown): TreeEntry {
  const list = listOf(row);
  const kind = kindFrom(list[0]);
  const mode = numberOf(list[1]);
  const size = numberOf(list[2]);
  const mtimeNs = BigInt(textOf(list[3]));
  const sha256 = textOf(list[4]);
  if (list[5] !== null) return { kind, mode, size, mtimeNs, sha256, target: textOf(list[5]) };
  if (list[6] === null) return { kind, mode, size, mtimeNs, sha256 };
  const from = listOf(list[6]);
  const stamp = { dev: numberOf(from[0]), ino: numberOf(from[1]), ctimeMs: numberOf(from[2]) };
  return { kind, mode, size, mtimeNs, sha256, stamp };
}

function kindFrom(value: unknown): TreeKind {
  if (value === "file" || value === "link" || value === "folder" || value === "other") return value;
  throw new Error("no such kind");
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error("a list is missing");
  return value;
}

function textOf(value: unknown): string {
  if (typeof value !== "string") throw new Error("a text is missing");
  return value;
}

function numberOf(value: unknown): number {
  if (typeof value !== "number") throw new Error("a number is missing");
  return value;
}
