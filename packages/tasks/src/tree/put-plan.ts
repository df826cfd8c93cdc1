/** What has to be done to a folder so that it is as a baseline, or so that it has some changes: found before anything is touched. */
import { randomBytes } from "node:crypto";
import { lstatSync, type BigIntStats } from "node:fs";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { toText } from "@heddle/tools/raw-path";
import { FolderCursor } from "./folder-cursor.ts";
import { compare } from "./freeze-work.ts";
import {
  byPath,
  foldersOf,
  isSameEntry,
  parentOf,
  type Change,
  type KeptTree,
  type RawPath,
  type TreeEntry,
} from "./manifest.ts";
import { thisProcess, type Intent, type PutStep } from "./put-intent.ts";
import { sliced } from "./slices.ts";
import { EntryTaker } from "./take-entry.ts";
import { codeOf } from "./tree-errors.ts";
import { treePlace } from "./tree-place.ts";
import { kindOf } from "./walk-tree.ts";

/** Times are set through seconds with a fraction, which loses less than this. */
const TIME_STEP_NS = 1_000n;

export interface UndoPlan {
  readonly root: string;
  /** Of the workspace against the baseline. */
  readonly changes: readonly Change[];
  /** Folders that could not be looked into. */
  readonly closed: ReadonlySet<RawPath>;
}

export async function findUndo(
  folder: string,
  base: KeptTree,
  { skip, signal }: { readonly skip: readonly string[]; readonly signal: AbortSignal },
): Promise<UndoPlan> {
  const { root, skipped } = treePlace(folder, skip);
  const all = new Set([...skipped, ...base.skipped]);
  const closed = new Set<RawPath>();
  const note = (path: RawPath): void => {
    refuseCovered(path, all);
    closed.add(path);
  };
  const { suspects, missing } = await compare(root, base, { skipped: all, signal, closed: note });
  using cursor = new FolderCursor(root);
  const slices = sliced(signal);
  const taker = new EntryTaker(cursor, slices);
  const changes: Change[] = [];
  for (const path of suspects) {
    if (slices.isOverSoon()) await slices.rest();
    const before = base.manifest.get(path);
    const now = await takeOrKnow(taker, cursor, path);
    if (now === undefined || (isSameEntry(before, now) && !closed.has(path))) continue;
    changes.push(before === undefined ? { path, how: "added", now } : { path, how: "changed", now, before });
  }
  for (const path of missing) {
    const before = base.manifest.get(path);
    if (before !== undefined) changes.push({ path, how: "removed", before });
  }
  return { root, changes: changes.sort(byPath), closed };
}

/** The steps that undo changes, and the times that differ. */
export async function undoIntent(
  { root, changes, closed }: UndoPlan,
  base: KeptTree,
  signal: AbortSignal,
): Promise<Intent> {
  const steps = changes.map(({ path, now, before }) =>
    stepOf(path, { now, wanted: before, isWhole: closed.has(path) }),
  );
  const put = new Set(steps.map(({ path }) => path));
  const emptied = new Set(changes.map(({ path }) => parentOf(path)));
  using cursor = new FolderCursor(root);
  const slices = sliced(signal);
  const times: Intent["times"] = [];
  const finals: Intent["finals"] = [];
  for (const [path, entry] of base.manifest) {
    if (slices.isOverSoon()) await slices.rest();
    const mtimeNs = String(entry.mtimeNs);
    const isPut = put.has(path);
    if (entry.kind === "folder") {
      if (isPut || emptied.has(path) || differsInTime(cursor, path, entry))
        finals.push({ path, mode: entry.mode, mtimeNs });
    } else if (!isPut && entry.kind !== "other" && differsInTime(cursor, path, entry)) {
      times.push({ path, mtimeNs });
    }
  }
  return { v: 1, id: newId(), owner: thisProcess(), folder: root, from: base.folder, steps, times, finals };
}

/** The steps that put changes into a folder. `task.rejected` when it is not as the baseline where they go. */
export async function workIntent(
  folder: string,
  changes: readonly Change[],
  { base, from, signal }: { readonly base: KeptTree; readonly from: string; readonly signal: AbortSignal },
): Promise<Intent> {
  const { root } = treePlace(folder, []);
  using cursor = new FolderCursor(root);
  const slices = sliced(signal);
  const taker = new EntryTaker(cursor, slices);
  const steps: PutStep[] = [];
  const finals = new Map<RawPath, Intent["finals"][number]>();
  for (const { path, now } of changes) {
    if (slices.isOverSoon()) await slices.rest();
    const current = await takeOrKnow(taker, cursor, path);
    const isThere = isSameEntry(current, now) || (current?.kind === "folder" && now?.kind === "folder");
    if (!isThere && !isSameEntry(current, base.manifest.get(path))) throw movedOn(path);
    steps.push(stepOf(path, { now: current, wanted: now, isWhole: false }));
    if (now?.kind === "folder") finals.set(path, { path, mode: now.mode, mtimeNs: String(now.mtimeNs) });
    const parent = parentOf(path);
    if (parent === "" || finals.has(parent)) continue;
    const stat = statAt(cursor, parent);
    if (stat !== undefined) finals.set(parent, { path: parent, mode: Number(stat.mode & 0o7777n) });
  }
  const sorted = [...finals.values()].toSorted(byPath);
  return { v: 1, id: newId(), owner: thisProcess(), folder: root, from, steps, times: [], finals: sorted };
}

function newId(): string {
  return randomBytes(6).toString("hex");
}

function stepOf(
  path: RawPath,
  {
    now,
    wanted,
    isWhole,
  }: { readonly now?: TreeEntry | undefined; readonly wanted?: TreeEntry | undefined; readonly isWhole: boolean },
): PutStep {
  return {
    path,
    ...(wanted === undefined ? {} : { wanted: wantedOf(wanted) }),
    ...(now === undefined ? {} : { was: { kind: now.kind, sha256: now.sha256 } }),
    ...(isWhole ? { isWhole } : {}),
  };
}

function wantedOf({ kind, mode, size, mtimeNs, sha256, target }: TreeEntry): NonNullable<PutStep["wanted"]> {
  return { kind, mode, size, mtimeNs: String(mtimeNs), sha256, ...(target === undefined ? {} : { target }) };
}

/** A file that its maker has closed is known by its kind: it is going to be replaced. undefined: it is gone. */
async function takeOrKnow(taker: EntryTaker, cursor: FolderCursor, path: RawPath): Promise<TreeEntry | undefined> {
  try {
    return await taker.take(path);
  } catch (error) {
    if (!isHeddleError(error) || error.details["errno"] !== "EACCES") throw error;
  }
  const stat = statAt(cursor, path);
  if (stat === undefined) return undefined;
  const { size, mtimeNs } = stat;
  return { kind: kindOf(stat), mode: Number(stat.mode & 0o7777n), size: Number(size), mtimeNs, sha256: "unreadable" };
}

function differsInTime(cursor: FolderCursor, path: RawPath, { mtimeNs }: TreeEntry): boolean {
  const stat = statAt(cursor, path);
  if (stat === undefined) return false;
  const difference = stat.mtimeNs - mtimeNs;
  return difference > TIME_STEP_NS || difference < -TIME_STEP_NS;
}

function statAt(cursor: FolderCursor, path: RawPath): BigIntStats | undefined {
  try {
    return lstatSync(cursor.at(path), { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" || code === "EACCES") return undefined;
    throw error;
  }
}

/** What is none of the tree's business would be removed with it. */
function refuseCovered(path: RawPath, skipped: ReadonlySet<RawPath>): void {
  for (const other of skipped) {
    for (const folder of foldersOf(other)) {
      if (folder !== path) continue;
      const shown = toText(path);
      throw new HeddleError(
        "path.invalid",
        `${shown} cannot be looked into and holds files of Heddle; open it (chmod u+rwx)`,
        {
          details: { path: shown },
        },
      );
    }
  }
}

function movedOn(path: RawPath): HeddleError {
  const shown = toText(path);
  return new HeddleError(
    "task.rejected",
    `${shown} has changed since the task began, so that the verified work cannot be put there; nothing was changed`,
    { details: { path: shown } },
  );
}
