/** A folder that is there whole or not at all: made beside its place and renamed. What a crash leaves is removed by the next. */
import { mkdirSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { removeTree } from "./remove-tree.ts";
import { cannotStore } from "./tree-errors.ts";

export async function makeWhole<T>(into: string, signal: AbortSignal, fill: (dir: string) => Promise<T>): Promise<T> {
  const fresh = `${into}.new`;
  try {
    mkdirSync(dirname(into), { recursive: true, mode: 0o700 });
    await removeTree(fresh, signal);
    mkdirSync(fresh, { mode: 0o700 });
    const made = await fill(fresh);
    await removeTree(into, signal);
    renameSync(fresh, into);
    return made;
  } catch (error) {
    // Also when it was cancelled: nothing half stays.
    await removeTree(fresh, new AbortController().signal).catch(() => undefined);
    if (signal.aborted) throw error;
    throw cannotStore(into, error);
  }
}
