/**
 * A draft (`apply: on-verified`): the agent works in a copy of the workspace, which gets only what was verified. So several
 * tasks may work on one workspace at once.
 *
 *   <home>-worktrees/<task id>/
 *     draft.json   written last; without it the draft is made again
 *     tree/        where the agent works
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { hasOwnTree, toHeddleError, type CheckResult, type TaskRecord } from "@heddle/protocol";
import { heddleFolders, requireOwnFolder, worktreesRoot } from "@heddle/tools";
import { protectedPart } from "@heddle/tools/files";
import { holdFolder, type HeldFolder } from "@heddle/tools/held-folder";
import { toText } from "@heddle/tools/raw-path";
import { roomsOf } from "../judge/task-rooms.ts";
import { listed } from "../checks/shown.ts";
import { keepTree } from "../tree/keep-tree.ts";
import type { RawPath } from "../tree/manifest.ts";
import { claimFolder, putWork, takeWorkBack } from "../tree/put-back.ts";
import { deliveredChanges, hasIntent, readDelivered, removeDelivered } from "../tree/put-intent.ts";
import { movedOn } from "../tree/put-plan.ts";
import { shownPath } from "../judge/work-changes.ts";
import { tiedLinks, type WorkToDeliver } from "./build-commit.ts";
import { OBSTACLES, type BroughtBack } from "./merge-back.ts";
import type { WorktreeOptions } from "./open-worktree.ts";

const MARK = "draft.json";

export function isDraft({ spec }: Pick<TaskRecord, "spec">): boolean {
  return spec.worktree === undefined && hasOwnTree(spec);
}

export async function openDraft({ home, task, signal }: WorktreeOptions): Promise<string> {
  const own = join(worktreesRoot(home), task.id);
  const tree = join(own, "tree");
  if (existsSync(join(own, MARK))) return tree;
  requireOwnFolder(task.spec.workspace);
  await rm(own, { recursive: true, force: true });
  await mkdir(own, { recursive: true, mode: 0o700 });
  const copy = join(own, "copy");
  // Another draft may be applying its work.
  await using _claim = await claimFolder(task.spec.workspace, { dir: roomsOf(home, task.id), signal });
  const kept = await keepTree(task.spec.workspace, { into: copy, skip: heddleFolders(home), signal });
  await rename(kept.folder, tree);
  await rm(copy, { recursive: true, force: true });
  using held = holdFolder(own);
  markDraft(held, task.spec.workspace);
  return tree;
}

/** Written last. */
export function markDraft(own: Pick<HeldFolder, "write">, workspace: string): void {
  own.write(MARK, JSON.stringify({ workspace }));
}

/** The workspace of a draft; undefined: there is no draft. */
export async function readDraft(own: string): Promise<string | undefined> {
  const text = await readFile(join(own, MARK), "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as { readonly workspace: string }).workspace;
}

export interface ApplyOptions extends WorktreeOptions {
  readonly work: WorkToDeliver;
}

/** The obstacle, if any; then nothing was changed. Applying again changes nothing more. */
export async function applyDraft({ home, task, work, signal }: ApplyOptions): Promise<Omit<BroughtBack, "merged">> {
  const { workspace } = task.spec;
  const closed = work.picked.filter(({ path }) => protectedPart(toText(path).split("/")) !== undefined);
  if (closed.length > 0) {
    const names = listed(closed.map(({ path }) => shownPath(path)));
    return {
      results: [failed(`protected paths are changed: ${names}; let a person make that change in ${workspace}`)],
    };
  }
  const tied = tiedLinks(work.picked);
  if (tied !== undefined) return { results: [failed(tied)] };
  requireOwnFolder(workspace);
  const dir = roomsOf(home, task.id);
  return await inTurn(workspace, async () => {
    try {
      await takeEarlierBack(workspace, work, { dir, signal });
      await putWork(workspace, work.frozen, work.picked, { dir, base: work.base, signal });
      return { results: [] };
    } catch (error) {
      signal.throwIfAborted();
      const { code, message } = toHeddleError(error);
      // Trying again does not help against missing rights or a full disk; half-applied work is finished by the next attempt.
      if (hasIntent(dir) || !OBSTACLES.has(code)) throw error;
      const obstacle = `${message}; the work is in ${join(worktreesRoot(home), task.id, "tree")}`;
      return { results: [failed(obstacle)], obstacle };
    }
  });
}

/** Work that came before its verdict was on record, and that was not the last word: it is not the owner's change. */
async function takeEarlierBack(
  workspace: string,
  { base, frozen }: WorkToDeliver,
  { dir, signal }: { readonly dir: string; readonly signal: AbortSignal },
): Promise<void> {
  const came = readDelivered(dir);
  if (came === undefined || came.work === frozen.sha256) return;
  const approve = async ([moved]: readonly RawPath[]): Promise<void> => {
    if (moved !== undefined) throw movedOn(moved);
  };
  await takeWorkBack(workspace, deliveredChanges(came, base.manifest), { dir, base, approve, signal });
  removeDelivered(dir);
}

/** The second of two drafts that end at once sees what the first has applied. */
const turns = new Map<string, Promise<unknown>>();

async function inTurn<T>(workspace: string, act: () => Promise<T>): Promise<T> {
  const before = turns.get(workspace);
  const own = (before ?? Promise.resolve()).then(act, act);
  turns.set(workspace, own);
  try {
    return await own;
  } finally {
    if (turns.get(workspace) === own) turns.delete(workspace);
  }
}

function failed(message: string): CheckResult {
  return { name: "apply", kind: "merge", outcome: "failed", message, startedAt: Date.now(), durationMs: 0 };
}
