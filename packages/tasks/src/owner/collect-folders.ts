/** Removes what ended tasks left in a folder with one entry for each task, and says of every entry why it went or stays. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../tree/remove-tree.ts";

export interface Collected {
  readonly taskId: string;
  readonly path: string;
  readonly outcome: "removed" | "would-remove" | "kept";
  /** Why, in a few words. */
  readonly reason: string;
}

export interface FoldersToCollect {
  readonly isDryRun: boolean;
  readonly signal: AbortSignal;
  /** Why it has to stay; undefined: nothing needs it. */
  readonly keeps: (taskId: string, path: string) => Promise<string | undefined>;
  /** Why one goes. */
  readonly unneeded: string;
}

export async function collectFolders(
  root: string,
  { isDryRun, signal, keeps, unneeded }: FoldersToCollect,
): Promise<readonly Collected[]> {
  const names: readonly string[] = await readdir(root).catch(() => []);
  const collected: Collected[] = [];
  for (const taskId of names.toSorted()) {
    const path = join(root, taskId);
    const reason = await keeps(taskId, path);
    if (reason === undefined && !isDryRun) await removeTree(path, signal);
    const outcome = reason !== undefined ? "kept" : isDryRun ? "would-remove" : "removed";
    collected.push({ taskId, path, outcome, reason: reason ?? unneeded });
  }
  return collected;
}
