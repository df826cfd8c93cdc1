/**
 * Where a contestant works: a copy of the contest's own tree, in which nobody works, so that all begin with the same bytes.
 * Killed meanwhile, the copy is made again.
 */
import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { HeddleError, type TaskRecord } from "@heddle/protocol";
import { worktreesRoot } from "@heddle/tools";
import { holdFolder } from "@heddle/tools/held-folder";
import { keepTree } from "../tree/keep-tree.ts";
import { markDraft, readDraft } from "../worktree/draft.ts";
import { readWorktree, writeWorktree } from "../worktree/open-worktree.ts";

export interface ContestantOptions {
  readonly home: string;
  readonly task: Pick<TaskRecord, "id" | "spec" | "parentId">;
  readonly signal: AbortSignal;
}

export async function openContestantTree({ home, task, signal }: ContestantOptions): Promise<string> {
  const { id, spec, parentId = "" } = task;
  const [own, contest] = [join(worktreesRoot(home), id), join(worktreesRoot(home), parentId)];
  const tree = join(own, "tree");
  const standing = await readWorktree(own);
  if (standing !== undefined) return standing.folder;
  if ((await readDraft(own)) !== undefined) return tree;
  const origin = await readWorktree(contest);
  const source = join(contest, "tree");
  if (!existsSync(source) || (origin === undefined) !== (spec.worktree === undefined)) {
    const message = `the tree that the contest ${parentId} began with no longer exists; heddle task retry ${parentId}`;
    throw new HeddleError("task.setup-failed", message);
  }
  await rm(own, { recursive: true, force: true });
  const copy = join(own, "copy");
  const kept = await keepTree(source, { into: copy, skip: [], signal });
  await rename(kept.folder, tree);
  await rm(copy, { recursive: true, force: true });
  if (origin === undefined) {
    using held = holdFolder(own);
    markDraft(held, spec.workspace);
    return tree;
  }
  const { delivered: _, ...rest } = origin;
  const folder = join(tree, relative(origin.tree, origin.folder));
  writeWorktree({ ...rest, taskId: id, tree, folder });
  return folder;
}
