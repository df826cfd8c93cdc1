/**
 * A folder that is there whole or not at all: made beside its path and renamed. What a crash leaves is removed by the next.
 * Its name is on the disk for good when it returns; what is in its files is told by their hashes.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { removeTree } from "./remove-tree.ts";
import { cannotStore, codeOf } from "./tree-errors.ts";

export async function makeWhole<T>(into: string, signal: AbortSignal, fill: (dir: string) => Promise<T>): Promise<T> {
  const fresh = `${into}.new`;
  try {
    const above = dirname(into);
    const first = mkdirSync(above, { recursive: true, mode: 0o700 });
    await removeTree(fresh, signal);
    mkdirSync(fresh, { mode: 0o700 });
    const made = await fill(fresh);
    syncFolder(fresh);
    await removeTree(into, signal);
    renameSync(fresh, into);
    syncFolder(above);
    if (first !== undefined) for (let at = above; at.length >= first.length; at = dirname(at)) syncFolder(dirname(at));
    return made;
  } catch (error) {
    // Also when it was cancelled: nothing half stays.
    await removeTree(fresh, new AbortController().signal).catch(() => undefined);
    if (signal.aborted) throw error;
    throw cannotStore(into, error);
  }
}

/** One that may be entered and not listed cannot be synced. */
export function syncFolder(path: string): void {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    if (codeOf(error) === "EACCES") return;
    throw error;
  }
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
