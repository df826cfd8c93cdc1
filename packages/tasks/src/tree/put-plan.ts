/** What has to be done to a folder so that it is as a baseline, or so that it has some changes: found before anything is touched. */
import { randomBytes } from "node:crypto";
import { lstatSync, statSync, type BigIntStats } from "node:fs";
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
import { type Intent, type PutStep } from "./put-intent.ts";
import { seenOf, UNREADABLE } from "./put-seen.ts";
import { sliced } from "./slices.ts";
import { EntryTaker, unreadMark, WHOLE_BYTES } from "./take-entry.ts";
import { codeOf } from "./tree-errors.ts";
import { openToOwner, treeRoot } from "./tree-root.ts";

/** Times are set through seconds with a fraction, which loses less than this. */
const TIME_STEP_NS = 1_000n;

export interface UndoPlan {
  readonly root: string;
  /** The folder that was looked at. */
  readonly rootId: string;
  /** Of the workspace against the baseline. */
  readonly changes: readonly Change[];
  /** Folders that could not be looked into. */
  readonly closed: ReadonlySet<RawPath>;
  /** What was there when it was looked at. */
  readonly seen: ReadonlyMap<RawPath, BigIntStats>;
  /** Of these nothing but the time differs. */
  readonly touched: readonly RawPath[];
}

export interface UndoOptions {
  readonly skip: readonly string[];
  /** What the agent is known to have left: of what may be that, the content is read. */
  readonly known?: readonly Change[] | undefined;
  readonly signal: AbortSignal;
}

export async function findUndo(
  folder: string,
  base: KeptTree,
  { skip, known = [], signal }: UndoOptions,
): Promise<UndoPlan> {
  const { root, skipped } = treeRoot(folder, skip);
  openToOwner(root);
  const all = new Set([...skipped, ...base.skipped]);
  const left = new Map(known.map(({ path, now }) => [path, now]));
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
  const seen = new Map<RawPath, BigIntStats>();
  const touched: RawPath[] = [];
  for (const { path } of suspects) {
    if (slices.isOverSoon()) await slices.rest();
    const before = base.manifest.get(path);
    const stat = statAt(cursor, path);
    if (stat !== undefined) seen.set(path, stat);
    const now = await takeOrKnow(taker, path, [before, left.get(path)]);
    if (now === undefined) continue;
    if (isSameEntry(before, now) && !closed.has(path)) {
      if (stat !== undefined && before !== undefined && differsInTime(stat, before)) touched.push(path);
      continue;
    }
    changes.push(before === undefined ? { path, how: "added", now } : { path, how: "changed", now, before });
  }
  for (const path of missing) {
    const before = base.manifest.get(path);
    if (before !== undefined) changes.push({ path, how: "removed", before });
  }
  return { root, rootId: rootOf(cursor), changes: changes.sort(byPath), closed, seen, touched };
}

/** The steps that undo changes, and the times that differ. */
export async function undoIntent(
  { root, rootId, changes, closed, seen, touched }: UndoPlan,
  base: KeptTree,
  signal: AbortSignal,
): Promise<Intent> {
  const steps = changes.map(({ path, now, before }) =>
    stepOf(path, { now, wanted: before, isWhole: closed.has(path), stat: seen.get(path) }),
  );
  const put = new Set(steps.map(({ path }) => path));
  const emptied = new Set(changes.map(({ path }) => parentOf(path)));
  using cursor = new FolderCursor(root);
  const slices = sliced(signal);
  const times: Intent["times"] = [];
  for (const path of touched) {
    const [entry, stat] = [base.manifest.get(path), seen.get(path)];
    if (entry === undefined || stat === undefined || entry.kind === "folder" || entry.kind === "other") continue;
    times.push({ path, mtimeNs: String(entry.mtimeNs), ...seenAt(stat) });
  }
  const finals = rootFinal(cursor, base.rootMode, steps.length > 0);
  for (const [path, entry] of base.manifest) {
    if (slices.isOverSoon()) await slices.rest();
    if (entry.kind !== "folder") continue;
    const stat = put.has(path) || emptied.has(path) ? undefined : statAt(cursor, path);
    if (put.has(path) || emptied.has(path) || (stat !== undefined && differsInTime(stat, entry)))
      finals.push({ path, mode: entry.mode, mtimeNs: String(entry.mtimeNs) });
  }
  return { v: 1, id: newId(), folder: root, root: rootId, from: base.folder, steps, times, finals };
}

function seenAt(stat: BigIntStats): { readonly seen: string } | undefined {
  const { seen } = seenOf(stat);
  return seen === undefined ? undefined : { seen };
}

/** A folder that takes no names is opened for the while; it gets back the mode it began with. */
function rootFinal(cursor: FolderCursor, wanted: number | undefined, isOpened: boolean): Intent["finals"] {
  const now = Number(statSync(`/proc/self/fd/${cursor.folder("")}`, { bigint: true }).mode & 0o7777n);
  const mode = wanted ?? now;
  return isOpened || mode !== now ? [{ path: "", mode }] : [];
}

export interface WorkToPut {
  /** Each with what is to be there now, and what should be there before. */
  readonly changes: readonly Change[];
  /** Where the content is. */
  readonly from: string;
  /** Time of files whose content changes, in milliseconds; absent: the one they were stored with. */
  readonly changedAt?: number;
  /** Of what is neither as it should be before nor as it is to be; throws to refuse. */
  readonly onMoved: (path: RawPath) => void;
  readonly signal: AbortSignal;
}

/** The steps that put changes into a folder. */
export async function workIntent(
  folder: string,
  { changes, from, changedAt, onMoved, signal }: WorkToPut,
): Promise<Intent> {
  const { root } = treeRoot(folder, []);
  using cursor = new FolderCursor(root);
  const slices = sliced(signal);
  const taker = new EntryTaker(cursor, slices);
  const steps: PutStep[] = [];
  const finals = new Map<RawPath, Intent["finals"][number]>();
  const folders = new Map([["", folderAt(cursor, "")]]);
  for (const { path, now, before } of changes) {
    if (slices.isOverSoon()) await slices.rest();
    const found = statAt(cursor, path);
    const current = await takeOrKnow(taker, path, [before, now]);
    const isThere = isSameEntry(current, now) || (current?.kind === "folder" && now?.kind === "folder");
    if (!isThere && !isSameEntry(current, before)) onMoved(path);
    const mtimeNs = timeFor(current, now, changedAt);
    const wanted = now === undefined ? undefined : { ...now, mtimeNs };
    steps.push(stepOf(path, { now: current, wanted, isWhole: false, stat: found }));
    if (now?.kind === "folder") finals.set(path, { path, mode: now.mode, mtimeNs: String(mtimeNs) });
    const parent = parentOf(path);
    for (const folder of [parent, ...(current?.kind === "folder" ? [path] : [])])
      if (!folders.has(folder)) folders.set(folder, folderAt(cursor, folder));
    if (parent === "" || finals.has(parent)) continue;
    const stat = statAt(cursor, parent);
    if (stat !== undefined) finals.set(parent, { path: parent, mode: Number(stat.mode & 0o7777n) });
  }
  const sorted = [...rootFinal(cursor, undefined, steps.length > 0), ...[...finals.values()].toSorted(byPath)];
  const before = [...folders.values()].flatMap((one) => one ?? []).toSorted(byPath);
  return { v: 1, id: newId(), folder: root, root: rootOf(cursor), from, steps, times: [], finals: sorted, before };
}

function folderAt(cursor: FolderCursor, path: RawPath): Intent["finals"][number] | undefined {
  const stat = path === "" ? statSync(`/proc/self/fd/${cursor.folder("")}`, { bigint: true }) : statAt(cursor, path);
  if (stat?.isDirectory() !== true) return undefined;
  return { path, mode: Number(stat.mode & 0o7777n), mtimeNs: String(stat.mtimeNs) };
}

/** What was built of the file before is older than it, whatever time its maker gave it; a mode alone makes no file newer. */
function timeFor(current: TreeEntry | undefined, now: TreeEntry | undefined, changedAt: number | undefined): bigint {
  if (now === undefined) return 0n;
  if (changedAt === undefined) return now.mtimeNs;
  const isSameContent = current?.kind === now.kind && current.sha256 === now.sha256;
  return isSameContent ? current.mtimeNs : BigInt(Math.round(changedAt)) * 1_000_000n;
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
    stat,
  }: {
    readonly now?: TreeEntry | undefined;
    readonly wanted?: TreeEntry | undefined;
    readonly isWhole: boolean;
    readonly stat: BigIntStats | undefined;
  },
): PutStep {
  return {
    path,
    ...(wanted === undefined ? {} : { wanted: wantedOf(wanted) }),
    ...(now === undefined
      ? {}
      : { was: { kind: now.kind, sha256: now.sha256, ...(stat === undefined ? {} : seenOf(stat)) } }),
    ...(isWhole ? { isWhole } : {}),
  };
}

function wantedOf({ kind, mode, size, mtimeNs, sha256, target }: TreeEntry): NonNullable<PutStep["wanted"]> {
  return { kind, mode, size, mtimeNs: String(mtimeNs), sha256, ...(target === undefined ? {} : { target }) };
}

/**
 * A file that its maker has closed is known by its kind: it is going to be replaced. A large one whose size is none of those
 * that it may have differs for certain, and is not read: it may be a terabyte of nothing. undefined: it is gone.
 */
async function takeOrKnow(
  taker: EntryTaker,
  path: RawPath,
  others: readonly (TreeEntry | undefined)[],
): Promise<TreeEntry | undefined> {
  const seen = taker.look(path);
  const mayBe = (other: TreeEntry | undefined): boolean => other?.size === seen?.size && other?.sha256 !== "";
  if (seen?.kind === "file" && seen.size > WHOLE_BYTES && !others.some(mayBe)) {
    return { ...seen, sha256: unreadMark(seen) };
  }
  try {
    return await taker.take(path);
  } catch (error) {
    if (!isHeddleError(error) || error.details["errno"] !== "EACCES") throw error;
  }
  return seen === undefined ? undefined : { ...seen, sha256: UNREADABLE };
}

/** Of the folder that a cursor began at. */
export function rootOf(cursor: FolderCursor): string {
  const { dev, ino } = statSync(`/proc/self/fd/${cursor.folder("")}`, { bigint: true });
  return `${dev} ${ino}`;
}

function differsInTime(stat: BigIntStats, { mtimeNs }: TreeEntry): boolean {
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

export function movedOn(path: RawPath): HeddleError {
  const shown = toText(path);
  return new HeddleError(
    "task.rejected",
    `${shown} has changed since the task began, so that the verified work cannot be put there; nothing was changed`,
    { details: { path: shown } },
  );
}
