/**
 * What agents of earlier tasks left in the folder where a task begins, and nobody judged or accepted: no owner wrote it, so a
 * verdict may not rest on it unnamed. It is told from what was frozen when they stopped, and holds for what still has the
 * content they left; what was changed since is the owner's.
 */
import { realpath } from "node:fs/promises";
import { hasOwnTree, type TaskBaseline, type TaskRecord } from "@heddle/protocol";
import { MAX_LEFT_FILES } from "@heddle/protocol/tasks";
import type { Journal } from "@heddle/journal";
import { toRaw, toText, type RawPath } from "@heddle/tools/raw-path";
import {
  comparePaths,
  isSameEntry,
  isSameTime,
  parentOf,
  type KeptTree,
  type Manifest,
  type TreeEntry,
} from "../tree/manifest.ts";
import { isKept, keepBefore, takingBack } from "./keep-before.ts";
import {
  guessed,
  keepAbandoned,
  ofAbandoned,
  ofDeleted,
  ofTask,
  type EarlierWork,
  type Found,
  type Paths,
} from "./earlier-work.ts";
import { enterTask, folderFinder, foldersOf, forgetTask, type LeftFolder } from "./left-index.ts";
import { isRepository } from "./pick.ts";
import { beforeFolder } from "./task-rooms.ts";

export interface LeftOptions {
  readonly journal: Journal;
  readonly home: string;
  /** That begins. */
  readonly task: Pick<TaskRecord, "id"> & { readonly spec: Pick<TaskRecord["spec"], "workspace"> };
  readonly signal: AbortSignal;
}

/** What the last agent that changed a path made of it. */
interface Trace extends Omit<Found, "path" | "isJudged"> {
  readonly taskId: string;
  /** Nothing of that task was judged. */
  readonly isUndoable: boolean;
  isJudged: boolean;
}

export async function leftBefore(options: LeftOptions, base: KeptTree): Promise<Pick<TaskBaseline, "left">> {
  const { journal, home, task } = options;
  const here = await realOr(task.spec.workspace);
  await enterTask(options, task.id, here);
  const own = await journal.tasks.get(task.id);
  if (own !== undefined) await keepAbandoned(options, own, base);
  const traces = new Map<RawPath, Trace>();
  const outside = new Map<RawPath, string>();
  for (const { folder, ...one } of await earlierHere(options, here, base.manifest))
    await follow(one, { home, folder, here, base, traces, outside });
  const written = [...outside].map(([path, taskId]) => ({
    path: toText(path),
    how: "changed" as const,
    taskId,
    isOutside: true as const,
  }));
  const found = [...traces]
    .filter(([path, { isJudged, isStill, before }]) => {
      const now = base.manifest.get(path);
      return !isJudged && isStill(now) && !(before !== undefined && isSameEntry(before.entry, now));
    })
    .toSorted(([one], [other]) => comparePaths(one, other));
  const reported = found.filter(isReported(found, base));
  if (reported.length + written.length === 0) return {};
  const isLost = ([, { before }]: Traced): boolean => before === undefined || !isKept(before);
  // What cannot be taken back is always named, so that it is seen when a check reads it.
  const [lost, known] = [reported.filter(isLost), reported.filter((one) => !isLost(one))];
  await keep(options, base, lost.length > MAX_LEFT_FILES ? [] : found.filter((one) => !isLost(one)));
  const files = [...lost, ...known].map(([path, { how, taskId, isUndoable }]) => ({
    path: toText(path),
    how,
    taskId,
    ...(isUndoable ? { isUndoable } : {}),
  }));
  const all = [...written, ...files];
  return { left: { files: all.slice(0, MAX_LEFT_FILES), count: all.length } };
}

/**
 * Times of what agents of earlier tasks had a hand in, which they choose as they like: what is as it was before them has the
 * time that it had before them, what they changed the time of the change, which no program can set.
 */
export async function timesBefore(options: LeftOptions, manifest: Manifest): Promise<ReadonlyMap<RawPath, bigint>> {
  const here = await realOr(options.task.spec.workspace);
  const known = new Map<RawPath, Dated>();
  for (const { folder, ...one } of await earlierHere(options, here, manifest)) {
    const { changes, touched } = await one.changes();
    const steps = [
      ...changes.flatMap(({ path, left, before }) => (before === undefined ? [] : [{ path, left, was: before.entry }])),
      ...touched.map(({ path, now, before }) => ({ path, left: now, was: before, own: before?.mtimeNs })),
    ];
    for (const { path, was, ...step } of steps) {
      const at = pathsOf(folder, here)?.toHere(path);
      if (at === undefined) continue;
      const last = known.get(at);
      known.set(at, { ...step, first: last !== undefined && isSameEntry(last.left, was) ? last.first : was });
    }
  }
  const times = new Map<RawPath, bigint>();
  for (const [path, { left, first, own }] of known) {
    const now = manifest.get(path);
    const isTheirs = now !== undefined && left !== undefined && isSameEntry(now, left) && isSameTime(now, left);
    const time = isSameEntry(first, now) ? first?.mtimeNs : own;
    if (isTheirs && time !== undefined) times.set(path, time);
  }
  return times;
}

interface Dated {
  /** By the last agent. */
  readonly left: TreeEntry | undefined;
  /** As it was before the first of those that followed each other. */
  readonly first: TreeEntry | undefined;
  /** Instead of the time that the last agent gave it. */
  readonly own?: bigint | undefined;
}

type Earlier = EarlierWork & { readonly folder: string };

/** The oldest first, with the folder each worked in as it is called now. */
async function earlierHere(options: LeftOptions, here: string, manifest: Manifest): Promise<readonly Earlier[]> {
  const find = folderFinder(here, manifest);
  // What those make that are at work now is said of the verdict, see beside.ts.
  const isBusy = await options.journal.tasks.busy();
  const earlier: Earlier[] = [];
  for (const known of await foldersOf(options)) {
    const folders = [...(await find(known))].filter((folder) => pathsOf(folder, here) !== undefined);
    if (folders.length === 0) continue;
    for (const one of await earlierIn(options, known, isBusy))
      for (const folder of folders) earlier.push({ ...one, folder });
  }
  return earlier.toSorted((a, b) => a.endedAt - b.endedAt);
}

type Traced = readonly [RawPath, Trace];

/** Not folders that something in them tells of, nor what went from a repository, as commits make it go. */
function isReported(found: readonly Traced[], { manifest }: KeptTree): (traced: Traced) => boolean {
  const around = new Set(found.map(([path]) => parentOf(path)));
  return ([path, { how, before }]) => {
    if (how === "removed" && isRepository({ path })) return false;
    return (manifest.get(path) ?? before?.entry)?.kind !== "folder" || !around.has(path);
  };
}

async function keep({ home, task, signal }: LeftOptions, base: KeptTree, found: readonly Traced[]): Promise<void> {
  const sources = new Map<RawPath, RawPath>();
  const changes = found.flatMap(([path, { before }]) => {
    const back = before === undefined ? undefined : takingBack(path, before, base.manifest.get(path));
    if (before !== undefined) sources.set(path, before.at);
    return back ?? [];
  });
  await keepBefore(beforeFolder(home, task.id), changes, { at: (path) => sources.get(path) ?? "", signal });
}

async function earlierIn(
  { journal, home, task }: LeftOptions,
  { tasks }: LeftFolder,
  isBusy: ReadonlySet<string>,
): Promise<readonly EarlierWork[]> {
  const found: EarlierWork[] = [];
  for (const { id, gone } of tasks) {
    if (id !== task.id && isBusy.has(id)) continue;
    const record = await journal.tasks.get(id);
    const abandoned = record === undefined ? undefined : await ofAbandoned(home, record);
    if (abandoned !== undefined) found.push(abandoned);
    if (id === task.id) continue;
    const work =
      record !== undefined ? ofTask(home, record) : gone === undefined ? undefined : ofDeleted(home, id, gone);
    if (work === undefined) continue;
    const all = await work.changes();
    // What is not there now can come back: only what was judged is forgotten.
    const isDone =
      work.isOver &&
      all.isKnown &&
      work.taken.length + all.outside.length + all.touched.length === 0 &&
      abandoned === undefined;
    if (isDone && all.changes.every(({ isJudged }) => isJudged)) await forgetTask(home, id);
    else found.push({ ...work, changes: async () => all });
  }
  return found;
}

/** Other tasks that work in this folder, around it or in it, and in no tree of their own. */
export async function tasksBeside(options: Omit<LeftOptions, "signal">): Promise<readonly TaskRecord[]> {
  const here = await realOr(options.task.spec.workspace);
  const beside: TaskRecord[] = [];
  for (const { path, tasks } of await foldersOf(options)) {
    if (pathsOf(path, here) === undefined) continue;
    for (const { id } of tasks) {
      const other = id === options.task.id ? undefined : await options.journal.tasks.get(id);
      if (other !== undefined && !hasOwnTree(other.spec)) beside.push(other);
    }
  }
  return beside;
}

interface Following extends Pick<LeftOptions, "home"> {
  /** Where the earlier task worked, as it is called now. */
  readonly folder: string;
  readonly here: string;
  readonly base: KeptTree;
  readonly traces: Map<RawPath, Trace>;
  /** Which task wrote a file that has a name outside. */
  readonly outside: Map<RawPath, string>;
}

async function follow(one: EarlierWork, { home, folder, here, base, traces, outside }: Following): Promise<void> {
  const paths = pathsOf(folder, here);
  if (paths === undefined) return;
  for (const file of one.taken) {
    const at = paths.toHere(toRaw(file)) ?? "";
    const trace = traces.get(at);
    if (trace !== undefined) trace.isJudged = true;
    outside.delete(at);
  }
  const { changes, isKnown, outside: written } = await one.changes();
  for (const path of written) {
    const at = paths.toHere(path);
    if (at !== undefined) outside.set(at, one.id);
  }
  const of = { taskId: one.id, isUndoable: one.isUndoable };
  for (const { path, ...trace } of changes) {
    const at = paths.toHere(path);
    if (at === undefined) continue;
    const last = traces.get(at);
    // Two agents in a row: what there was before the first.
    const isOnTop =
      last !== undefined && !last.isJudged && trace.before !== undefined && last.isStill(trace.before.entry);
    traces.set(at, { ...trace, ...of, before: isOnTop ? last.before : trace.before });
  }
  if (isKnown) return;
  for (const { path, before } of await guessed(home, one, { base, ...paths })) {
    const entry = base.manifest.get(path);
    const how = entry === undefined ? "removed" : "changed";
    traces.set(path, { how, ...of, isStill: (now) => now === entry, isJudged: false, before });
  }
}

function pathsOf(there: string, here: string): Paths | undefined {
  const same = (path: RawPath): RawPath => path;
  if (there === here) return { toHere: same, toThere: same };
  const within = (inner: string, outer: string): [Paths["toHere"], Paths["toHere"]] | undefined => {
    if (!inner.startsWith(`${outer}/`)) return undefined;
    const prefix = `${toRaw(inner.slice(outer.length + 1))}/`;
    return [(path) => `${prefix}${path}`, (path) => (path.startsWith(prefix) ? path.slice(prefix.length) : undefined)];
  };
  const below = within(there, here);
  if (below !== undefined) return { toHere: below[0], toThere: below[1] };
  const above = within(here, there);
  return above === undefined ? undefined : { toHere: above[1], toThere: above[0] };
}

async function realOr(folder: string): Promise<string> {
  return await realpath(folder).catch(() => folder);
}
