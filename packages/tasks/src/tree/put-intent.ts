/**
 * What is about to be put into a workspace, whole and on disk before the first change: a process that dies meanwhile leaves
 * the rest of it to whoever comes next. Removed after the last change.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { holdFolder } from "@heddle/tools/held-folder";
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
