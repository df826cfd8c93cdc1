/** When something in a folder changed last, as far as a short look tells. Looked at only when nothing else moves. */
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Enough for an agent's work. */
const MAX_ENTRIES = 5000;
const PASSED_OVER = new Set([".git", "node_modules", ".venv", "target"]);

/** A new or removed name changes its folder. 0: nothing could be read. */
export function newestChange(folder: string): number {
  let newest = changedAt(folder);
  let left = MAX_ENTRIES;
  const folders = [folder];
  for (const path of folders) {
    for (const entry of entriesOf(path)) {
      left -= 1;
      if (left < 0) return newest;
      const inside = join(path, entry.name);
      newest = Math.max(newest, changedAt(inside));
      if (entry.isDirectory() && !PASSED_OVER.has(entry.name)) folders.push(inside);
    }
  }
  return newest;
}

/** The inode's time, which programs cannot set. */
function changedAt(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0;
}

function entriesOf(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return [];
  }
}
