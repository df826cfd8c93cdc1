/** Removes what was kept to judge tasks by (their beginning, their frozen work) when it is not needed any more. */
import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasEnded, type TaskRecord } from "@heddle/protocol";
import { collectFolders, type Collected } from "./collect-folders.ts";
import { keepGone } from "../judge/earlier-work.ts";
import { baseFolder, goneFolder, roomsOf, roomsRoot } from "../judge/task-rooms.ts";
import { collectFolderClaims } from "../tree/folder-claims.ts";
import { resumePutting } from "../tree/put-back.ts";
import { hasIntent } from "../tree/put-intent.ts";
import { removeTree } from "../tree/remove-tree.ts";
import type { CollectOptions } from "../worktree/collect-worktrees.ts";
import { worktreesRoot } from "@heddle/tools";

/** After the worktrees: whether a draft can go is seen by what it began with. */
export async function collectRooms(options: CollectOptions): Promise<readonly Collected[]> {
  const root = roomsRoot(options.home);
  if (!options.isDryRun) {
    await resumePutting(root, options.signal);
    const isOld = (changedAtMs: number): boolean => options.now() - changedAtMs >= options.olderThanMs;
    await collectFolderClaims(options.home, { isOld, signal: options.signal });
  }
  return collectFolders(root, {
    ...options,
    keeps: (taskId, path) => keeps(options, taskId, path),
    unneeded: "its task ended long ago; undo and verify no longer need it",
  });
}

/** To be called before a task is deleted, for the tasks that begin in its folder later. Answers what has to stay. */
export async function keepGoneOf(home: string, task: TaskRecord): Promise<readonly string[]> {
  const needsBeginning = await keepGone(home, task, new AbortController().signal);
  return [goneFolder(home, task.id), ...(needsBeginning ? [baseFolder(home, task.id)] : [])];
}

/** Of a deleted task, but for what `keepGoneOf` kept. What was being put into a workspace is finished first. */
export async function removeRooms(home: string, taskId: string, kept: readonly string[]): Promise<void> {
  const { signal } = new AbortController();
  const rooms = roomsOf(home, taskId);
  if (!existsSync(rooms)) return;
  await resumePutting(roomsRoot(home), signal, ({ dir, error }) => {
    if (dir === rooms) throw error;
  });
  if (!kept.some((folder) => existsSync(folder))) return await removeTree(rooms, signal);
  for (const name of await readdir(rooms))
    if (!kept.includes(join(rooms, name))) await removeTree(join(rooms, name), signal);
}

/** undefined: nothing does. */
async function keeps(options: CollectOptions, taskId: string, path: string): Promise<string | undefined> {
  const { journal, home, olderThanMs, now } = options;
  const task = await journal.tasks.get(taskId);
  if (task !== undefined && !hasEnded(task)) return `its task is ${task.state}`;
  if (hasIntent(path)) return "what was being put into its workspace is not finished";
  const endedAt = task?.updatedAt ?? (await stat(path)).mtimeMs;
  if (now() - endedAt < olderThanMs) return "its task ended not long ago";
  return existsSync(join(worktreesRoot(home), taskId)) ? "its worktree is still there" : undefined;
}
