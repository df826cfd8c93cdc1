/** What is asked before the first change: whether what is to be put is whole, and whether it can be put there. */
import { accessSync, constants, statSync } from "node:fs";
import { HeddleError } from "@heddle/protocol";
import { requireOwnFolder } from "@heddle/tools";
import { toText } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import { foldersOf, parentOf, type RawPath } from "./manifest.ts";
import type { Intent } from "./put-intent.ts";
import { rootOf } from "./put-plan.ts";
import { sliced } from "./slices.ts";
import { EntryTaker } from "./take-entry.ts";
import { codeOf, damaged } from "./tree-errors.ts";

/** A put failed, and everything is as it was before. */
export class TakenBack extends Error {
  readonly path: RawPath;

  constructor(path: RawPath, cause: unknown) {
    super("the change of the workspace failed and was undone", { cause });
    this.path = path;
  }
}

/** Throws `store.damaged` when something that is to be put is not what was kept: nothing may be begun then. */
export async function requireStored(intent: Intent, signal: AbortSignal): Promise<void> {
  using stored = new FolderCursor(intent.from);
  const slices = sliced(signal);
  const taker = new EntryTaker(stored, slices);
  for (const { path, wanted } of intent.steps) {
    if (slices.isOverSoon()) await slices.rest();
    if (wanted?.kind !== "file") continue;
    const found = await taker.take(path);
    if (found?.kind !== "file" || found.sha256 !== wanted.sha256) {
      throw damaged(`Heddle's copy of ${toText(path)} is missing or changed`);
    }
  }
}

/** Throws `TakenBack` for a folder that takes no names and is not ours to open: nothing may be begun then. */
export function requireWritable(intent: Intent): void {
  using cursor = openRoot(intent);
  for (const folder of new Set(intent.steps.map(({ path }) => parentOf(path)))) requireOpenable(cursor, folder);
}

/** Behind one of ours that is closed nothing can be seen yet, nor where no folder is yet. */
function requireOpenable(cursor: FolderCursor, folder: RawPath): void {
  let isOurs = true;
  for (const path of folder === "" ? [""] : ["", ...foldersOf(folder), folder]) {
    try {
      const itself = `/proc/self/fd/${cursor.folder(path)}`;
      isOurs = statSync(itself).uid === process.getuid?.();
      if (path === folder) accessSync(itself, constants.W_OK | constants.X_OK);
    } catch (error) {
      const code = codeOf(error);
      if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" || (code === "EACCES" && isOurs)) return;
      throw new TakenBack(path, error);
    }
  }
}

/** The folder that the plan was made for; not what a link in its place leads to, and no other folder. */
export function openRoot({ folder, root }: Intent): FolderCursor {
  requireOwnFolder(folder);
  const cursor = new FolderCursor(folder);
  if (root === undefined || root === rootOf(cursor)) return cursor;
  cursor[Symbol.dispose]();
  throw new HeddleError("workspace.moved", `${folder} is another folder than the one that was looked at`, {
    details: { path: folder },
  });
}
