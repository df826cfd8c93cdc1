/**
 * What is about to be put into a workspace, whole and on disk before the first change: a process that dies meanwhile leaves
 * the rest of it to whoever comes next. Removed after the last change.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readProcStat } from "@heddle/tools/files";
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
  /** Of what was there when it was planned; absent: nothing was. */
  was: z.strictObject({ kind: Kind, sha256: z.string() }).optional(),
  /** A folder that could not be looked into: it goes with all that is in it. */
  isWhole: z.literal(true).optional(),
});

const Final = z.strictObject({ path: z.string(), mode: z.int(), mtimeNs: z.string().optional() });

export const Intent = z.strictObject({
  v: z.literal(1),
  /** In the names of files that are not in place yet. */
  id: z.string(),
  owner: z.strictObject({ pid: z.int(), start: z.string() }),
  folder: z.string(),
  /** Where the content is. */
  from: z.string(),
  /** In order of path. */
  steps: z.array(Step),
  /** Files and links whose times alone differ. */
  times: z.array(z.strictObject({ path: z.string(), mtimeNs: z.string() })),
  /** Modes and times that folders have afterwards, in order of path. */
  finals: z.array(Final),
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
  let text: string;
  try {
    text = readFileSync(join(dir, NAME), "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    return Intent.parse(JSON.parse(text));
  } catch (cause) {
    throw damaged(`${join(dir, NAME)} cannot be read`, cause);
  }
}

/** Folders with an intent in them. */
export function foldersWithIntents(roomsFolder: string): readonly string[] {
  if (!existsSync(roomsFolder)) return [];
  const folders = readdirSync(roomsFolder).map((name) => join(roomsFolder, name));
  return folders.filter((folder) => existsSync(join(folder, NAME))).toSorted();
}

export function thisProcess(): Intent["owner"] {
  return { pid: process.pid, start: startOf(process.pid) ?? "unknown" };
}

/** Whoever wrote it is still at it. */
export function isOwned({ owner }: Intent): boolean {
  return owner.pid !== process.pid && startOf(owner.pid) === owner.start;
}

function startOf(pid: number): string | undefined {
  const ticks = readProcStat(pid)?.startTicks;
  return ticks === undefined ? undefined : String(ticks);
}
