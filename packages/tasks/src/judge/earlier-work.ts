/** Earlier tasks as what they left in their folder and nobody judged: told from what was frozen when their agents stopped. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { hasEnded, hasOwnTree, type TaskRecord } from "@heddle/protocol";
import type { WorkFile } from "@heddle/protocol/tasks";
import { CLOCK_STEP_MS } from "@heddle/tools/files";
import { toRaw, toText, type RawPath } from "@heddle/tools/raw-path";
import { globList } from "../checks/globs.ts";
import { readFrozenWork } from "../tree/freeze-work.ts";
import { readKeptTree } from "../tree/keep-tree.ts";
import { FILES, writeWork } from "../tree/manifest-file.ts";
import { byPath, isSameEntry, type Change, type FrozenWork, type KeptTree, type TreeEntry } from "../tree/manifest.ts";
import { makeWhole } from "../tree/new-folder.ts";
import type { Before } from "./keep-before.ts";
import { forgetTask, keepTask, type Gone } from "./left-index.ts";
import { isRepository } from "./pick.ts";
import { abandonedFolder, baseFolder, goneFolder, roomsOf, roundOf } from "./task-rooms.ts";

/** An earlier task, as far as it matters for what it left. */
export interface EarlierWork {
  readonly id: string;
  readonly endedAt: number;
  readonly isUndoable: boolean;
  /** What its owner took on their word, although earlier agents had left it. */
  readonly taken: readonly string[];
  readonly changes: () => Promise<Changes>;
  /** When its agent worked, for what is not known of it. */
  readonly createdAt: number;
  /** It changes nothing any more. */
  readonly isOver: boolean;
}

export interface Changes {
  readonly changes: readonly Found[];
  /** Also of the last round that the agent worked in. */
  readonly isKnown: boolean;
  /** What it wrote outside the folder too. */
  readonly outside: readonly RawPath[];
  /** What it gave another time and left as it was otherwise. */
  readonly touched: readonly Change[];
}

export function ofTask(home: string, task: TaskRecord): EarlierWork {
  return {
    id: task.id,
    endedAt: task.updatedAt,
    isUndoable: task.lastCheck?.passed !== true && !isTaken(task),
    taken: takenBy(task),
    changes: async () => await changesOf(home, task),
    createdAt: task.createdAt,
    isOver: hasEnded(task),
  };
}

/** Of a tree of its own only what was judged came here. */
function hasWorked({ round, spec }: TaskRecord): boolean {
  return round > 0 && !hasOwnTree(spec);
}

/** Undoing takes nothing back that was written outside. */
function outsideOf(task: TaskRecord, frozen?: FrozenWork): readonly RawPath[] {
  if (isTaken(task)) return [];
  const reported = (task.lastCheck?.review?.reasons ?? []).flatMap(({ kind, files }) =>
    kind === "outside" ? files : [],
  );
  return frozen?.wroteOutside ?? reported.map(toRaw);
}

/** Undoing gives what was changed its time back, and lets the rest be. */
function touchedBy({ undone }: TaskRecord, frozen: FrozenWork | undefined): readonly Change[] {
  const { touched = [], changes = [] } = frozen ?? {};
  if (undone === undefined) return touched;
  const changed = new Set(changes.map(({ path }) => path));
  return touched.filter(({ path }) => !changed.has(path));
}

function takenBy(task: TaskRecord): readonly string[] {
  if (!isTaken(task) || task.undone !== undefined) return [];
  return (task.lastCheck?.review?.reasons ?? []).flatMap(({ kind, files }) => (kind === "left" ? files : []));
}

/** Of a task that is deleted, by what `keepGone` kept. */
export function ofDeleted(home: string, id: string, { at: endedAt, taken, createdAt }: Gone): EarlierWork {
  const changes = async (): Promise<Changes> => {
    const frozen = await readFrozenWork(goneFolder(home, id)).catch(() => undefined);
    const { changes: left = [], wroteOutside: outside = [], touched = [] } = frozen ?? {};
    return { changes: foundIn(home, id, left), isKnown: createdAt === undefined, outside, touched };
  };
  return { id, endedAt, isUndoable: false, taken, changes, createdAt: createdAt ?? endedAt, isOver: true };
}

/**
 * What a task that is about to be deleted leaves in its folder and nobody judged: names and hashes, no content. True: not all
 * of it is known, and its beginning has to stay for a guess.
 */
export async function keepGone(home: string, task: TaskRecord, signal: AbortSignal): Promise<boolean> {
  const newest = hasWorked(task) ? await newestOf(home, task) : undefined;
  const isKnown = !hasWorked(task) || task.undone !== undefined || newest?.round === task.round;
  const { frozen } = newest ?? {};
  const isJudged = judgedBy(task, frozen?.sha256);
  const left = task.undone === undefined ? (frozen?.changes ?? []) : [];
  const unjudged = left.filter(({ path }) => !isJudged(toText(path)));
  const changes = joined((await readAbandoned(home, task.id)) ?? [], unjudged);
  const wroteOutside = frozen === undefined ? [] : outsideOf(task, frozen);
  const touched = touchedBy(task, frozen);
  const taken = takenBy(task);
  if (isKnown && changes.length + wroteOutside.length + touched.length + taken.length === 0) {
    await forgetTask(home, task.id);
    return false;
  }
  const work = { changes, touched, ...(wroteOutside.length === 0 ? {} : { wroteOutside }) };
  await makeWhole(goneFolder(home, task.id), signal, (dir) => writeWork(dir, work, signal));
  const since = isKnown ? {} : { createdAt: task.createdAt };
  await keepTask(home, task.id, { at: task.updatedAt, taken: [...taken], ...since });
  return !isKnown;
}

/** What one agent after another made of a folder. */
function joined(first: readonly Change[], then: readonly Change[]): readonly Change[] {
  const all = new Map([...first, ...then].map((change) => [change.path, change]));
  return [...all.values()].toSorted(byPath);
}

/** In place of what there was before a change of which only the name is known: no such content is kept anywhere. */
const UNKNOWN: TreeEntry = { kind: "file", mode: 0, size: -1, mtimeNs: 0n, sha256: "" };

/**
 * Of a task that begins anew, because the copy of its beginning no longer exists: what its agent had left by then and nobody
 * judged is no part of the new beginning. It stays on record for the tasks after it too, names and hashes, no content.
 */
export async function keepAbandoned(
  { home, signal }: { readonly home: string; readonly signal: AbortSignal },
  task: TaskRecord,
  { manifest }: KeptTree,
): Promise<void> {
  const { changes: found } = await changesOf(home, task);
  const unjudged = found.filter(({ path, isJudged, isStill }) => !isJudged && isStill(manifest.get(path)));
  const changes = unjudged.map(({ path, how }): Change => {
    const now = manifest.get(path);
    return { path, how, ...(now === undefined ? {} : { now }), ...(how === "added" ? {} : { before: UNKNOWN }) };
  });
  const all = joined((await readAbandoned(home, task.id)) ?? [], changes);
  if (all.length === 0) return;
  await makeWhole(abandonedFolder(home, task.id), signal, (dir) => writeWork(dir, { changes: all }, signal));
}

async function readAbandoned(home: string, id: string): Promise<readonly Change[] | undefined> {
  return (await readFrozenWork(abandonedFolder(home, id)).catch(() => undefined))?.changes;
}

/** What a task that there still is had left before its present beginning; undefined: nothing. */
export async function ofAbandoned(home: string, task: TaskRecord): Promise<EarlierWork | undefined> {
  const changes = await readAbandoned(home, task.id);
  if (changes === undefined) return undefined;
  return {
    id: task.id,
    // Before all that it did since.
    endedAt: task.createdAt,
    isUndoable: false,
    taken: [],
    changes: async () => ({ changes: foundIn(home, task.id, changes), isKnown: true, outside: [], touched: [] }),
    createdAt: task.createdAt,
    isOver: true,
  };
}

/** What an agent made of a path. */
export interface Found {
  readonly path: RawPath;
  readonly how: WorkFile["how"];
  readonly isStill: (now: TreeEntry | undefined) => boolean;
  /** As the agent left it; absent: gone, or not known. */
  readonly left?: TreeEntry | undefined;
  readonly isJudged: boolean;
  /** What there was before agents whose work nobody judged; undefined: nobody knows. */
  readonly before: Before | undefined;
}

/** By the newest that was frozen; else by what the record names. */
async function changesOf(home: string, task: TaskRecord): Promise<Changes> {
  if (!hasWorked(task)) return { changes: [], isKnown: true, outside: [], touched: [] };
  const newest = await newestOf(home, task);
  const outside = outsideOf(task, newest?.frozen);
  const touched = touchedBy(task, newest?.frozen);
  if (task.undone !== undefined) return { changes: [], isKnown: true, outside, touched };
  if (newest !== undefined) {
    const isJudged = judgedBy(task, newest.frozen.sha256);
    return {
      changes: foundIn(home, task.id, newest.frozen.changes, isJudged),
      isKnown: newest.round === task.round,
      outside,
      touched,
    };
  }
  const { work } = task.lastCheck ?? {};
  const isJudged = judgedBy(task, work?.sha256);
  const changes = [...(work?.delivered ?? []), ...(work?.others ?? [])].map(({ path, how, sha256 = "" }) => ({
    path: toRaw(path),
    how,
    isStill: (now: TreeEntry | undefined) => (now?.sha256 ?? "") === sha256,
    isJudged: isJudged(path),
    before: how === "added" ? { at: "" } : undefined,
  }));
  return { changes, isKnown: false, outside, touched };
}

/** It is told against the beginning, and so says it all. */
async function newestOf(
  home: string,
  { id }: TaskRecord,
): Promise<{ readonly frozen: FrozenWork; readonly round: number } | undefined> {
  const rooms = roomsOf(home, id);
  const names = await readdir(rooms).catch(() => []);
  const newest = names.toSorted((one, other) => (roundOf(one) ?? -1) - (roundOf(other) ?? -1)).at(-1) ?? "";
  const round = roundOf(newest);
  const frozen = round === undefined ? undefined : await readFrozenWork(join(rooms, newest)).catch(() => undefined);
  return round === undefined || frozen === undefined ? undefined : { frozen, round };
}

function foundIn(
  home: string,
  taskId: string,
  changes: readonly Change[],
  isJudged: (path: string) => boolean = () => false,
): readonly Found[] {
  return changes.map(({ path, how, now: left, before }) => ({
    path,
    how,
    isStill: (now) => isAsLeft(now, left),
    left,
    isJudged: isJudged(toText(path)),
    before: { entry: before, at: keptAt(home, taskId, path) },
  }));
}

function keptAt(home: string, taskId: string, path: RawPath): RawPath {
  return `${toRaw(join(baseFolder(home, taskId), FILES))}/${path}`;
}

/** What was too large to be read without need is known by its size and time. */
function isAsLeft(now: TreeEntry | undefined, left: TreeEntry | undefined): boolean {
  if (left?.kind === "file" && left.sha256 === "") return now?.size === left.size && now.mtimeNs === left.mtimeNs;
  return isSameEntry(now, left);
}

/** The owner's word, where the checks alone did not verify it. */
function isTaken({ state, claim, lastCheck }: TaskRecord): boolean {
  return state === "claimed" && claim?.by === "user" && lastCheck?.review !== undefined;
}

/** Of the work with this hash. */
function judgedBy(task: TaskRecord, sha256: string | undefined): (path: string) => boolean {
  const { work, passed } = task.lastCheck ?? {};
  if (work === undefined || work.sha256 !== sha256 || !(passed === true || isTaken(task))) return () => false;
  const deliver = task.deliver ?? task.spec.deliver;
  const refused = new Set(work.others.map(({ path }) => path));
  if (deliver === undefined) {
    const delivered = new Set(work.delivered.map(({ path }) => path));
    return (path) => delivered.has(path);
  }
  const isDelivered = globList(deliver);
  return (path) => isDelivered(path) && !refused.has(path) && !isRepository({ path: toRaw(path) });
}

/** A worker that died records nothing of what its agent did last: what changed or went meanwhile may be the agent's. */
export async function guessed(
  home: string,
  { id, createdAt, endedAt }: Pick<EarlierWork, "id" | "createdAt" | "endedAt">,
  { base, toThere, toHere }: { readonly base: KeptTree } & Paths,
): Promise<readonly Pick<Found, "path" | "before">[]> {
  const began = await readKeptTree(baseFolder(home, id)).catch(() => undefined);
  if (began === undefined) return [];
  const changed = [...base.manifest].flatMap(([path, entry]) => {
    const at = entry.stamp?.ctimeMs ?? 0;
    const there = toThere(path);
    const isMeanwhile = at >= createdAt - CLOCK_STEP_MS && at <= endedAt + CLOCK_STEP_MS;
    if (!isMeanwhile || there === undefined) return [];
    const before = { entry: began.manifest.get(there), at: keptAt(home, id, there) };
    return isSameEntry(before.entry, entry) ? [] : [{ path, before }];
  });
  // No time says when something went.
  const removed = [...began.manifest].flatMap(([there, entry]) => {
    const path = toHere(there);
    if (path === undefined || base.manifest.has(path)) return [];
    return [{ path, before: { entry, at: keptAt(home, id, there) } }];
  });
  return [...changed, ...removed];
}

export interface Paths {
  /** From a path in the earlier task's folder to one in this folder; undefined: it is not in it. */
  readonly toHere: (path: RawPath) => RawPath | undefined;
  readonly toThere: (path: RawPath) => RawPath | undefined;
}
