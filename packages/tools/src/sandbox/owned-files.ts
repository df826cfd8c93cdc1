/**
 * The owner's protected paths without a mount: more than can be mounted, links, files with a second name, names that
 * are not text. Each is kept in memory with everything below it; when any of it changes, the new state goes to
 * quarantine and the old one is restored. What is kept is bounded; more is refused.
 */
import { randomUUID } from "node:crypto";
import { constants, readdirSync, readlinkSync } from "node:fs";
import { mkdir, open, rename, symlink, type FileHandle } from "node:fs/promises";
import { HeddleError } from "@heddle/protocol";
import { identityOf } from "../files/path-walk.ts";
import { attempt } from "../attempt.ts";
import { at, inFolderOf, type PathBelow } from "./descriptor-walk.ts";
import { isWithin } from "./mountinfo.ts";
import { readRegularFile } from "./private-folder.ts";
import { toSystem, toText, type RawPath } from "./raw-path.ts";
import { CLOCK_STEP_MS, lastPart, statRaw } from "./tree-index.ts";

/** Below a mounted folder; checked once, when the sandbox opens. */
const MAX_LOOKED_AT = 100_000;

interface Owned {
  readonly path: RawPath;
  readonly kind: "directory" | "file" | "symlink" | "other";
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** The bytes of a file, the target of a link. */
  readonly content: Buffer;
  readonly stamp: string;
}

export interface OwnedBounds {
  /** Each costs a stat in every sweep. */
  readonly entries: number;
  readonly bytes: number;
}

/** Settings and hooks are small and few; at most 30 ms per sweep. */
const BOUNDS: OwnedBounds = { entries: 20_000, bytes: 32 * 1024 * 1024 };

export class OwnedFiles {
  readonly #paths = new Map<RawPath, { readonly entries: readonly Owned[]; readonly parent: string }>();
  readonly #bounds: OwnedBounds;
  #entries = 0;
  #bytes = 0;

  constructor(bounds: OwnedBounds = BOUNDS) {
    this.#bounds = bounds;
  }

  /** Throws `sandbox.unavailable` when it is more than can be kept. */
  keep(path: RawPath): void {
    this.forget(path);
    const { entries: most, bytes } = this.#bounds;
    const entries = readAll(path, { entries: most - this.#entries, bytes: bytes - this.#bytes });
    if (entries === undefined) throw tooMuch(path, this.#bounds);
    if (entries.length > 0) this.#set(path, entries);
  }

  forget(path: RawPath): void {
    const kept = this.#paths.get(path);
    if (kept === undefined) return;
    this.#paths.delete(path);
    this.#entries -= kept.entries.length;
    this.#bytes -= sizeOf(kept.entries);
  }

  #set(path: RawPath, entries: readonly Owned[]): void {
    this.forget(path);
    this.#paths.set(path, { entries, parent: parentOf(path) });
    this.#entries += entries.length;
    this.#bytes += sizeOf(entries);
  }

  /** It is kept, or lies in a kept folder. */
  covers(path: RawPath): boolean {
    for (let top = path; top !== ""; top = top.slice(0, top.lastIndexOf("/"))) if (this.#paths.has(top)) return true;
    return false;
  }

  /**
   * Kept paths whose state differs. `byContent`: compare contents too, because a program that has mapped a file can
   * change it without changing its times.
   */
  changed({ byContent }: { readonly byContent: boolean }): RawPath[] {
    const changed: RawPath[] = [];
    const stayed: [RawPath, readonly Owned[]][] = [];
    for (const [path, { entries, parent }] of this.#paths) {
      if (!byContent && entries.every((entry) => stampOf(entry.path) === entry.stamp)) continue;
      const now = readAll(path, this.#bounds);
      if (now?.length === 0 && parentOf(path) !== parent) continue;
      if (now === undefined || !isSame(entries, now)) changed.push(path);
      else stayed.push([path, now]);
    }
    for (const [path, now] of stayed) this.#set(path, now);
    return changed;
  }

  /** Those removed with a folder that was not protected. */
  forgetGone(): void {
    for (const [path, { parent }] of this.#paths)
      if (parentOf(path) !== parent && statRaw(path) === undefined) this.forget(path);
  }

  /** It was moved with a folder above it and is unchanged. */
  follow(path: RawPath): boolean {
    const stat = statRaw(path);
    if (stat === undefined) return false;
    const isIt = `${identityOf(stat)}:`;
    for (const [old, { entries }] of this.#paths) {
      if (entries[0]?.stamp.startsWith(isIt) !== true || old === path || statRaw(old) !== undefined) continue;
      const moved = entries.map((entry) => ({ ...entry, path: path + entry.path.slice(old.length) }));
      const now = readAll(path, this.#bounds);
      if (now === undefined || !isSame(moved, now)) continue;
      this.forget(old);
      this.#set(path, now);
      return true;
    }
    return false;
  }

  /** Nothing may exist there. */
  async putBack(entry: PathBelow): Promise<void> {
    const kept = this.#paths.get(entry.path);
    if (kept === undefined) return;
    const [top] = kept.entries;
    if (top === undefined) return;
    await inFolderOf(entry, async (folder, name) => {
      const aside = `.heddle-restored-${randomUUID()}`;
      await write(top, kept.entries, { folder, name: aside });
      await rename(at(folder, aside), at(folder, name));
    });
    const now = readAll(entry.path, this.#bounds);
    if (now !== undefined && isSame(kept.entries, now)) this.#set(entry.path, now);
  }
}

/** Through descriptors, because commands can replace what is being made by a link. */
async function write(
  { path, kind, mode, uid, gid, content }: Owned,
  all: readonly Owned[],
  { folder, name }: { readonly folder: FileHandle; readonly name: string },
): Promise<void> {
  const target = at(folder, name);
  if (kind === "symlink") await symlink(content, target);
  if (kind === "file") {
    await using handle = await open(target, "wx", mode);
    await handle.writeFile(content);
    await handle.chmod(mode);
    if (process.getuid?.() === 0) await handle.chown(uid, gid);
  }
  if (kind !== "directory") return;
  await mkdir(target, { mode: 0o700 });
  await using handle = await open(target, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  for (const entry of all) {
    if (entry.path.slice(0, entry.path.lastIndexOf("/")) !== path) continue;
    await write(entry, all, { folder: handle, name: lastPart(entry.path) });
  }
  await handle.chmod(mode);
  if (process.getuid?.() === 0) await handle.chown(uid, gid);
}

/** The path and everything below it, folders first. undefined: more than `left` allows. */
function readAll(top: RawPath, left: OwnedBounds): Owned[] | undefined {
  const all: Owned[] = [];
  let bytes = left.bytes;
  const stack = [top];
  for (let path = stack.pop(); path !== undefined; path = stack.pop()) {
    const entry = readOne(path, bytes);
    if (entry === "gone") continue;
    if (entry === "too large" || all.length >= left.entries) return undefined;
    bytes -= entry.content.length;
    all.push(entry);
    if (entry.kind === "directory") for (const name of namesIn(path)) stack.push(`${path}/${name}`);
  }
  return all;
}

const NOTHING = Buffer.alloc(0);

function readOne(path: RawPath, maxBytes: number): Owned | "gone" | "too large" {
  // Taken before the content, so that a change meanwhile shows.
  const stamp = stampOf(path);
  const stat = statRaw(path);
  if (stat === undefined || stamp === undefined) return "gone";
  const rights = { mode: Number(stat.mode) & 0o7777, uid: Number(stat.uid), gid: Number(stat.gid) };
  const common = { path, ...rights, stamp };
  if (stat.isDirectory()) return { ...common, kind: "directory", content: NOTHING };
  if (stat.isSymbolicLink())
    return { ...common, kind: "symlink", content: attempt(() => readlinkSync(toSystem(path), "buffer")) ?? NOTHING };
  if (!stat.isFile()) return { ...common, kind: "other", content: NOTHING };
  if (stat.size > maxBytes) return "too large";
  // What cannot be read here cannot be read by a command either: it is the same user with fewer rights.
  return { ...common, kind: "file", content: readRegularFile(path) ?? NOTHING };
}

function sizeOf(entries: readonly Owned[]): number {
  return entries.reduce((bytes, { content }) => bytes + content.length, 0);
}

function isSame(before: readonly Owned[], now: readonly Owned[]): boolean {
  if (before.length !== now.length) return false;
  const byPath = new Map(now.map((entry) => [entry.path, entry]));
  return before.every((entry) => {
    const other = byPath.get(entry.path);
    if (other === undefined || other.kind !== entry.kind) return false;
    return entry.kind === "symlink"
      ? other.content.equals(entry.content)
      : other.mode === entry.mode && other.content.equals(entry.content);
  });
}

let fresh = 0;

/** Unique for a path that changed a moment ago: the clock's resolution could hide a further change. */
export function stampOf(path: RawPath): string | undefined {
  const stat = statRaw(path);
  if (stat === undefined) return undefined;
  const stamp = `${identityOf(stat)}:${stat.ctimeNs}:${stat.size}`;
  return Number(stat.ctimeMs) > Date.now() - CLOCK_STEP_MS ? `${stamp}:fresh ${(fresh += 1)}` : stamp;
}

export function isSameState(one: string | undefined, other: string): boolean {
  return one?.split(":fresh", 1)[0] === other.split(":fresh", 1)[0];
}

function parentOf(path: RawPath): string {
  const stat = statRaw(path.slice(0, path.lastIndexOf("/")));
  return stat?.isDirectory() === true ? identityOf(stat) : "none";
}

function namesIn(path: RawPath): readonly string[] {
  return attempt(() => readdirSync(toSystem(path), "latin1")) ?? [];
}

/** Files with a second name, through which they can be written. */
export function filesWithMoreNames(top: RawPath): RawPath[] {
  const found: RawPath[] = [];
  const stack = [top];
  for (let path = stack.pop(), seen = 0; path !== undefined; path = stack.pop(), seen += 1) {
    if (seen > MAX_LOOKED_AT) throw tooMuch(top, { ...BOUNDS, entries: MAX_LOOKED_AT });
    const stat = statRaw(path);
    if (stat?.isDirectory() === true) for (const name of namesIn(path)) stack.push(`${path}/${name}`);
    else if (stat?.isFile() === true && stat.nlink > 1n) found.push(path);
  }
  return found;
}

export function rootOf(path: RawPath, roots: readonly RawPath[]): RawPath | undefined {
  return roots.find((root) => isWithin(path, root));
}

function tooMuch(path: RawPath, { entries, bytes }: OwnedBounds): HeddleError {
  return new HeddleError(
    "sandbox.unavailable",
    `there are more protected paths than can be held: at most ${entries} files and folders and ` +
      `${bytes / 1024 / 1024} MiB of them without a mount of their own, and ${toText(path)} would be one too many. ` +
      "Remove what is not needed (git repositories, .vscode, .github/workflows and others in vendored folders), give " +
      "files their own copy instead of a hard link, or name a smaller folder as the workspace.",
  );
}
