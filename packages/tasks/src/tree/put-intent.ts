/**
 * What is about to be put into a workspace, whole and on disk before the first change: a process that dies meanwhile leaves
 * the rest of it to whoever comes next. Removed after the last change.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { holdFolder } from "@heddle/tools/held-folder";
import type { Change, Manifest, TreeEntry } from "./manifest.ts";
import { codeOf, damaged } from "./tree-errors.ts";

const NAME = "put.json";

const Kind = z.enum(["file", "link", "folder", "other"]);

const Wanted = z.strictObject({
  kind: Kind,
  mode: z.int(),
  size: z.int(),
  mtimeNs: z.string().regex(/^-?\d+$/),
  sha256: z.string(),
  target: z.string().optional(),
});

const Step = z.strictObject({
  /** Raw. */
  path: z.string(),
  /** Absent: nothing is to be there. */
  wanted: Wanted.optional(),
  /** What was there when it was planned; absent: nothing was. Instead of a hash: what `unreadMark` says of a large file. */
  was: z
    .strictObject({
      kind: Kind,
      sha256: z.string(),
      /** Which file that was, and when it changed last. */
      seen: z.string().optional(),
      /** It had changed so recently that this proves nothing. */
      isFresh: z.literal(true).optional(),
    })
    .optional(),
  /** A folder that could not be looked into: it goes with all that is in it. */
  isWhole: z.literal(true).optional(),
});

/** What an undo is of, of which state of the task, and who asked for it. */
const Undoes = z.strictObject({ files: z.int(), version: z.int(), by: z.string() });
export type Undoes = z.infer<typeof Undoes>;

/** The owner's checkout that gets a commit: its branch is moved when all files are in place, and then its index. */
const Merges = z.strictObject({
  repository: z.string(),
  /** Absolute. */
  index: z.string(),
  /** Which index the new one was made of; absent: there was none. */
  seen: z.string().optional(),
  /** Absent: HEAD is a commit. */
  branch: z.string().optional(),
  head: z.string(),
  commit: z.string(),
});
export type Merges = z.infer<typeof Merges>;

/** Verified work, all of it or nothing: the hash that says which, and the commit that it comes as. */
const Delivers = z.strictObject({ work: z.string(), merges: Merges.optional() });
export type Delivers = z.infer<typeof Delivers>;

const Final = z.strictObject({ path: z.string(), mode: z.int(), mtimeNs: z.string().optional() });

export const Intent = z.strictObject({
  v: z.literal(1),
  /** In the names of files that are not in place yet. */
  id: z.string(),
  folder: z.string(),
  /** Device and inode of the folder: another one in its place is not the one that is meant. */
  root: z.string().optional(),
  /** Where the content is. */
  from: z.string(),
  /** In order of path. */
  steps: z.array(Step),
  /** Files and links whose times alone differ. */
  times: z.array(z.strictObject({ path: z.string(), mtimeNs: z.string(), seen: z.string().optional() })),
  /** Modes and times that folders have afterwards, in order of path. */
  finals: z.array(Final),
  /** Of an undo: when all is in place the record is to say so. */
  undoes: Undoes.optional(),
  delivers: Delivers.optional(),
  /** Of delivered work: modes and times of the folders as they were, for whoever takes it back. */
  before: z.array(Final).optional(),
  /** Of delivered work that is no commit: all of it is in place, and what it replaces may go. */
  isPlaced: z.literal(true).optional(),
});
export type Intent = z.infer<typeof Intent>;
export type PutStep = z.infer<typeof Step>;

/** Durable when it returns. */
export function writeIntent(dir: string, intent: Intent): void {
  using folder = holdFolder(dir, { makes: true });
  folder.write(NAME, JSON.stringify(intent));
}

export function removeIntent(dir: string): void {
  using folder = holdFolder(dir);
  rmSync(folder.at(NAME), { force: true });
  folder.sync();
}

export function readIntent(dir: string): Intent | undefined {
  return readJson(join(dir, NAME), Intent);
}

function readJson<T>(path: string, schema: z.ZodType<T>): T | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw damaged(`${path} cannot be read`, cause);
  }
}

/** Folders with an intent in them. */
export function foldersWithIntents(roomsFolder: string): readonly string[] {
  if (!existsSync(roomsFolder)) return [];
  const folders = readdirSync(roomsFolder).map((name) => join(roomsFolder, name));
  return folders.filter(hasIntent).toSorted();
}

export function hasIntent(dir: string): boolean {
  return existsSync(join(dir, NAME));
}

const UNDONE = "undone.json";

/** Durable when it returns: from here to the event of the task the workspace is put back and the record does not say so. */
export function noteUndone(dir: string, undoes: Undoes): void {
  using folder = holdFolder(dir);
  folder.write(UNDONE, JSON.stringify(undoes));
}

export function readUndone(dir: string): Undoes | undefined {
  return readJson(join(dir, UNDONE), Undoes);
}

export function removeUndone(dir: string): void {
  rmSync(join(dir, UNDONE), { force: true });
}

const DELIVERED = "delivered.json";

const Delivered = z.strictObject({
  v: z.literal(1),
  work: z.string(),
  /** Of a draft: what was put where; paths are raw. */
  files: z.array(z.strictObject({ path: z.string(), wanted: Wanted.optional() })).optional(),
  commit: z.string().optional(),
});
export type DeliveredWork = Omit<z.infer<typeof Delivered>, "v">;

/** Durable when it returns: the work is in the workspace, whatever the record says of the task yet. */
export function noteDelivered(dir: string, { work, merges }: Delivers, steps: readonly PutStep[]): void {
  using folder = holdFolder(dir);
  const files = steps.map(({ path, wanted }) => ({ path, ...(wanted === undefined ? {} : { wanted }) }));
  const what = merges === undefined ? { files } : { commit: merges.commit };
  folder.write(DELIVERED, JSON.stringify({ v: 1, work, ...what } satisfies z.infer<typeof Delivered>));
}

/** What came back of a task last; undefined: nothing, or it was taken back. */
export function readDelivered(dir: string): DeliveredWork | undefined {
  return readJson(join(dir, DELIVERED), Delivered);
}

/** Of a draft: from its beginning to what was put there. */
export function deliveredChanges({ files = [] }: DeliveredWork, base: Manifest): readonly Change[] {
  return files.flatMap(({ path, wanted }): readonly Change[] => {
    const before = base.get(path);
    if (wanted === undefined) return before === undefined ? [] : [{ path, how: "removed", before }];
    const { target, mtimeNs, ...entry } = wanted;
    const now: TreeEntry = { ...entry, mtimeNs: BigInt(mtimeNs), ...(target === undefined ? {} : { target }) };
    return [before === undefined ? { path, how: "added", now } : { path, how: "changed", now, before }];
  });
}

export function removeDelivered(dir: string): void {
  rmSync(join(dir, DELIVERED), { force: true });
}

const LEFT = "put-left.json";
/** Enough to look at; the number of all is beside them. */
const MAX_LEFT = 1_000;

const Left = z.strictObject({ v: z.literal(1), folder: z.string(), paths: z.array(z.string()), count: z.int() });
type LeftPaths = Omit<z.infer<typeof Left>, "v">;

/** Durable when it returns; the note of an earlier put goes. */
export function noteLeft(
  dir: string,
  { folder, paths }: { readonly folder: string; readonly paths: readonly string[] },
): void {
  using held = holdFolder(dir);
  if (paths.length === 0) return rmSync(held.at(LEFT), { force: true });
  const left: z.infer<typeof Left> = { v: 1, folder, paths: paths.slice(0, MAX_LEFT), count: paths.length };
  held.write(LEFT, JSON.stringify(left));
}

/** What the last put into the workspace of a task left alone, because somebody else had changed it meanwhile. */
export function readLeft(dir: string): LeftPaths | undefined {
  const left = readJson(join(dir, LEFT), Left);
  return left === undefined ? undefined : { folder: left.folder, paths: left.paths, count: left.count };
}
