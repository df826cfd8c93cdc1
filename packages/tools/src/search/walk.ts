/**
 * Walks the files below a folder through the race-free listing: links are not followed, and the walk is bounded and
 * reports it.
 */
import { join } from "node:path";
import { listInside, type PathRules } from "../files/paths.ts";

/** Rarely searched, and most of a tree. */
const SKIPPED = new Set([".git", "node_modules", ".hg", ".svn", "__pycache__", ".venv"]);
const MAX_FILES = 50_000;
const MAX_FOLDER_ENTRIES = 20_000;

export interface WalkedFile {
  readonly path: string;
  /** From the walk's root, with `/`. */
  readonly relative: string;
}

/** Depth first, names in order. Returns whether something was left out. */
export async function* walkFiles(
  root: string,
  rules: PathRules,
  options: { readonly signal: AbortSignal },
): AsyncGenerator<WalkedFile, { readonly isTruncated: boolean }> {
  const folders: string[] = [""];
  let files = 0;
  let isTruncated = false;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    options.signal.throwIfAborted();
    const listing = await listOrSkip(join(root, folder), rules, folder === "");
    if (listing === undefined) continue;
    isTruncated ||= listing.isTruncated;
    const below: string[] = [];
    for (const { name, kind } of listing.entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const relative = folder === "" ? name : `${folder}/${name}`;
      if (kind === "directory" && !SKIPPED.has(name)) below.push(relative);
      if (kind !== "file") continue;
      files += 1;
      if (files > MAX_FILES) return { isTruncated: true };
      yield { path: join(root, relative), relative };
    }
    folders.push(...below.reverse());
  }
  return { isTruncated };
}

/** Unreadable and vanished folders are skipped, except for the root. */
async function listOrSkip(path: string, rules: PathRules, isRoot: boolean) {
  try {
    return await listInside(path, rules, { maxEntries: MAX_FOLDER_ENTRIES });
  } catch (error) {
    if (isRoot) throw error;
    return undefined;
  }
}
