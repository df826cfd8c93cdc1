/**
 * Unpacks a bundle that anybody may have made into a folder that is empty and this process's own. Nothing in it is
 * believed: paths stay below the folder and are in order, nothing lies below a link, content has the size and the hash that
 * are said of it, and the whole is bounded. What the record says is checked by its own chain.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { chmod, mkdir, open, symlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { createGunzip } from "node:zlib";
import { errorCodeOf, HeddleError, isHeddleError, reasonOf, visibleLine } from "@heddle/protocol";
import { toRaw, toSystem } from "@heddle/tools/raw-path";
import { comparePaths, foldersOf, isSameEntry, linkEntry, parentOf } from "../../tree/manifest.ts";
import type { Change, RawPath, TreeEntry } from "../../tree/manifest.ts";
import { FILES, writeTree, writeWork } from "../../tree/manifest-file.ts";
import { baseFolder, beforeFolder, workFolder } from "../../judge/task-rooms.ts";
import { shownPath } from "../../judge/work-changes.ts";
import { BundleLine, fromRow, PIECE_BYTES } from "./bundle-lines.ts";

/** As much as is kept of a workspace. */
const MAX_BYTES = 20 * 1024 ** 3;
const MAX_ENTRIES = 4_000_000;
/** An event with the results of many checks is long; content comes in pieces. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;
const MAX_RECORD_BYTES = 256 * 1024 * 1024;

export interface Unpacked {
  readonly taskId: string;
  /** Lines of an export of the task's stream. */
  readonly record: readonly string[];
  /** Of all its lines, which are what this says. */
  readonly sha256: string;
  /** Under that hash, by whom the record says; not looked at here. */
  readonly signature?: string;
}

/** `store.damaged` says what is wrong with it. */
export async function unpackBundle(file: string, home: string, signal: AbortSignal): Promise<Unpacked> {
  const input = createReadStream(file, { signal });
  const unzipped = createGunzip();
  input.once("error", (error) => unzipped.destroy(error));
  input.pipe(unzipped);
  try {
    return await new Unpacker(linesOf(unzipped), home, signal).run();
  } catch (cause) {
    signal.throwIfAborted();
    if (isHeddleError(cause)) throw cause;
    if (String(errorCodeOf(cause)).startsWith("Z_"))
      throw bad("it is not a bundle, or it is cut off or damaged", cause);
    throw bad(`it cannot be read (${visibleLine(reasonOf(cause))})`, cause);
  } finally {
    input.destroy();
    unzipped.destroy();
  }
}

function bad(what: string, cause?: unknown): HeddleError {
  return new HeddleError("store.damaged", `this bundle cannot be trusted: ${what}`, { cause });
}

interface Read {
  readonly text: string;
  readonly line: BundleLine;
}

async function* linesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Read> {
  let pieces: Buffer[] = [];
  let held = 0;
  for await (const chunk of source) {
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, end + 1));
      from = end + 1;
      yield parsed(Buffer.concat(pieces).toString("utf8"));
      pieces = [];
      held = 0;
    }
    pieces.push(chunk.subarray(from));
    held += chunk.length - from;
    if (held > MAX_LINE_BYTES) throw bad("it has a line that is too long");
  }
  if (held > 0) throw bad("its last line is not whole");
}

function parsed(text: string): Read {
  try {
    return { text, line: BundleLine.parse(JSON.parse(text)) };
  } catch (cause) {
    throw bad("it has a line that does not belong in a bundle", cause);
  }
}

class Unpacker {
  readonly #lines: AsyncGenerator<Read>;
  readonly #home: string;
  readonly #signal: AbortSignal;
  readonly #digest = createHash("sha256");
  #count = 0;
  #bytes = 0;
  #next: BundleLine | undefined;
  #end: Pick<Unpacked, "sha256" | "signature"> = { sha256: "" };

  constructor(lines: AsyncGenerator<Read>, home: string, signal: AbortSignal) {
    this.#lines = lines;
    this.#home = home;
    this.#signal = signal;
  }

  async run(): Promise<Unpacked> {
    await this.#advance();
    const { task: taskId } = await this.#take("header");
    if (!/^task_[\w-]{1,100}$/.test(taskId)) throw bad("it names no task");
    const record = await this.#record();
    const { skipped } = await this.#take("tree");
    skipped.forEach(requirePath);
    const dir = baseFolder(this.#home, taskId);
    const base = await this.#tree(join(dir, FILES));
    await writeTree(dir, base, { skipped, signal: this.#signal });
    const { round } = await this.#take("work");
    await this.#work(workFolder(this.#home, taskId, round), base);
    if (this.#next?.kind === "before") {
      await this.#take("before");
      await this.#work(beforeFolder(this.#home, taskId), base);
    }
    if (this.#next !== undefined) throw bad("something follows its end");
    return { taskId, record, ...this.#end };
  }

  /** Also makes sure that the end is the end. */
  async #advance(): Promise<void> {
    this.#signal.throwIfAborted();
    const { value } = await this.#lines.next();
    const read: Read | undefined = value;
    if (read === undefined) throw bad("it is cut off");
    if (read.line.kind !== "end") {
      this.#digest.update(read.text);
      this.#count += 1;
      this.#next = read.line;
      return;
    }
    const { lines, sha256, signature } = read.line;
    if (lines !== this.#count || sha256 !== this.#digest.digest("hex"))
      throw bad("its lines are not those it was sealed with");
    if ((await this.#lines.next()).done !== true) throw bad("something follows its end");
    this.#end = { sha256, ...(signature === undefined ? {} : { signature }) };
    this.#next = undefined;
  }

  async #take<K extends BundleLine["kind"]>(kind: K): Promise<Extract<BundleLine, { kind: K }>> {
    const line = this.#next;
    if (!isOf(line, kind))
      throw bad(`${line === undefined ? "its end" : `a line of ${line.kind}`} stands where ${kind} is due`);
    await this.#advance();
    return line;
  }

  async #record(): Promise<readonly string[]> {
    const lines: string[] = [];
    let bytes = 0;
    while (this.#next?.kind === "record") {
      const { line } = await this.#take("record");
      bytes += line.length;
      if (bytes > MAX_RECORD_BYTES) throw bad("its record is too long");
      lines.push(line);
    }
    return lines;
  }

  async #tree(folder: string): Promise<ReadonlyMap<RawPath, TreeEntry>> {
    const entries = new Map<RawPath, TreeEntry>();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    let last: RawPath | undefined;
    while (this.#next?.kind === "entry") {
      const line = await this.#take("entry");
      const { path } = line;
      const entry = fromRow(line.entry);
      requireAfter(last, path);
      last = path;
      if (!isFolder(entries.get(parentOf(path)), path)) throw bad(`${shownPath(path)} is in no folder`);
      if (entries.size >= MAX_ENTRIES) throw bad("it has too many files");
      await this.#put(folder, { path, entry, hasContent: true });
      entries.set(path, entry);
    }
    await closeFolders(folder, entries);
    return entries;
  }

  async #work(into: string, base: ReadonlyMap<RawPath, TreeEntry>): Promise<void> {
    const folder = join(into, FILES);
    const changes = new Map<RawPath, Change>();
    const made = new Map<RawPath, TreeEntry>();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    let last: RawPath | undefined;
    while (this.#next?.kind === "change") {
      const line = await this.#take("change");
      const { path, how, hasContent } = line;
      requireAfter(last, path);
      last = path;
      const [now, before] = [line.now, line.before].map((row) => (row === undefined ? undefined : fromRow(row)));
      if (
        !isSameEntry(before, base.get(path)) ||
        (how === "added") !== (before === undefined) ||
        (how === "removed") !== (now === undefined)
      )
        throw bad(`${shownPath(path)} did not change in this way`);
      const change: Change = {
        path,
        how,
        ...(now === undefined ? {} : { now }),
        ...(before === undefined ? {} : { before }),
        ...(now?.kind === "file" && !hasContent ? { isLeftOut: true } : {}),
      };
      if (changes.size >= MAX_ENTRIES) throw bad("it has too many changes");
      changes.set(path, change);
      if (now === undefined) continue;
      for (const parent of foldersOf(path)) {
        const above = changes.has(parent) ? changes.get(parent)?.now : base.get(parent);
        if (above?.kind !== "folder") throw bad(`${shownPath(path)} is in no folder`);
        if (made.has(parent)) continue;
        await mkdir(toSystem(`${toRaw(folder)}/${parent}`), { mode: 0o700 });
        made.set(parent, above);
      }
      if (now.kind === "folder" && made.has(path)) throw bad("it has an entry twice");
      await this.#put(folder, { path, entry: now, hasContent });
      if (now.kind === "folder") made.set(path, now);
    }
    await closeFolders(folder, made);
    await writeWork(into, { changes: [...changes.values()] }, this.#signal);
  }

  async #put(
    folder: string,
    { path, entry, hasContent }: { readonly path: RawPath; readonly entry: TreeEntry; readonly hasContent: boolean },
  ): Promise<void> {
    const at = toSystem(`${toRaw(folder)}/${path}`);
    if ((entry.kind === "link") !== (entry.target !== undefined))
      throw bad(`${shownPath(path)} is neither a link nor a file`);
    switch (entry.kind) {
      case "folder":
        await mkdir(at, { mode: 0o700 });
        return;
      case "link":
        if (linkEntry(entry.target ?? "", entry).sha256 !== entry.sha256 || entry.target?.includes("\0") !== false)
          throw bad(`${shownPath(path)} points elsewhere than its hash says`);
        await symlink(toSystem(entry.target), at);
        return;
      case "file":
        if (hasContent) await this.#content(at, path, entry);
        return;
      case "other":
        return;
    }
  }

  async #content(at: string | Buffer, path: RawPath, { size, sha256, mode, mtimeNs }: TreeEntry): Promise<void> {
    this.#bytes += size;
    if (this.#bytes > MAX_BYTES) throw bad("it is larger than any workspace that is kept");
    const digest = createHash("sha256");
    const file = await open(at, "wx", 0o600);
    try {
      let left = size;
      while (left > 0) {
        if (this.#next?.kind !== "data") throw bad(`${shownPath(path)} is shorter than it says`);
        const piece = Buffer.from((await this.#take("data")).base64, "base64");
        if (piece.length === 0 || piece.length > Math.min(left, PIECE_BYTES))
          throw bad(`${shownPath(path)} is longer than it says`);
        left -= piece.length;
        digest.update(piece);
        await file.writeFile(piece);
      }
      if (digest.digest("hex") !== sha256) throw bad(`${shownPath(path)} is not what its hash says`);
      await file.chmod(mode);
      await file.utimes(Number(mtimeNs) / 1e9, Number(mtimeNs) / 1e9);
    } finally {
      await file.close();
    }
  }
}

function isOf<K extends BundleLine["kind"]>(
  line: BundleLine | undefined,
  kind: K,
): line is Extract<BundleLine, { kind: K }> {
  return line?.kind === kind;
}

function isFolder(parent: TreeEntry | undefined, path: RawPath): boolean {
  return parentOf(path) === "" || parent?.kind === "folder";
}

/** One character for each byte, below the folder by its words alone. */
function requirePath(path: RawPath): void {
  const parts = path.split("/");
  const isFine =
    path.length <= 4096 &&
    !path.includes("\0") &&
    !/[^\0-\xff]/.test(path) &&
    parts.every((part) => part !== "" && part !== "." && part !== ".." && part.length <= 255);
  if (!isFine) throw bad(`${shownPath(path.slice(0, 200))} is not a path below a folder`);
}

function requireAfter(last: RawPath | undefined, path: RawPath): void {
  requirePath(path);
  if (last !== undefined && comparePaths(last, path) >= 0)
    throw bad(`${shownPath(path)} is out of order, or there twice`);
}

/** Last and deepest first: a closed folder cannot be filled. */
async function closeFolders(folder: string, entries: ReadonlyMap<RawPath, TreeEntry>): Promise<void> {
  for (const [path, { kind, mode, mtimeNs }] of [...entries].toReversed()) {
    if (kind !== "folder") continue;
    const at = toSystem(`${toRaw(folder)}/${path}`);
    await chmod(at, mode);
    await utimes(at, Number(mtimeNs) / 1e9, Number(mtimeNs) / 1e9);
  }
}
