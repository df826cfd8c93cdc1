/** Which of the picked changes go into a room, in which form, and why others do not. */
import type { JudgedWork, TaskSpec, WorkFile } from "@heddle/protocol/tasks";
import { toText } from "@heddle/tools/raw-path";
import { gitModeOf } from "../git/git-tree.ts";
import {
  byPath,
  foldersOf,
  isSameEntry,
  type Change,
  type FrozenWork,
  type KeptTree,
  type Manifest,
  type RawPath,
  type TreeEntry,
} from "../tree/manifest.ts";
import { completePicks } from "../tree/picked-changes.ts";
import { linksOut } from "./links.ts";
import { isRepository } from "./pick.ts";

export interface Admitted {
  /** A whole tree with the beginning. */
  readonly picked: readonly Change[];
  /** What of the work is not judged, or not as it was made, and why. */
  readonly why: ReadonlyMap<RawPath, string>;
}

export interface AdmitOptions {
  readonly spec: Pick<TaskSpec, "worktree">;
  /** Where the room is. */
  readonly folder: string;
  readonly base: KeptTree;
  readonly frozen: FrozenWork;
}

const LEADS_OUT = "a link that leads out of the workspace is not judged";

export function admit({ spec, folder, base, frozen }: AdmitOptions, picks: readonly Change[]): Admitted {
  const why = new Map<RawPath, string>();
  const isIn = ({ path }: Change): boolean => !why.has(path) && ![...foldersOf(path)].some((at) => why.has(at));
  const complete = (): readonly Change[] =>
    completePicks(base.manifest, frozen.changes, picks.filter(isIn)).filter(isIn);
  let picked = complete();
  // Without one link another leads elsewhere. Each time there are fewer.
  for (let out = linksOut(base.manifest, picked, folder); out.size > 0;) {
    for (const path of out) why.set(path, LEADS_OUT);
    picked = complete();
    out = linksOut(base.manifest, picked, folder);
  }
  for (const [path, folderNow] of lostBehind(frozen.changes, picked))
    why.set(
      path,
      `${toText(folderNow)} is no longer a folder, and is not delivered: what lies behind it now is not this file`,
    );
  if (spec.worktree === undefined || spec.worktree.merge === "none") return { picked, why };
  const carried = inGitForm(base.manifest, picked);
  return { picked: carried.picked, why: new Map([...why, ...carried.why]) };
}

/** Picked as gone, because a folder around it became a link or a file that is not picked: by path, which folder. */
function lostBehind(changes: readonly Change[], picked: readonly Change[]): ReadonlyMap<RawPath, RawPath> {
  const own = new Set(picked.map(({ path }) => path));
  const replaced = new Set(
    changes
      .filter(
        ({ path, before, now }) => before?.kind === "folder" && (now ?? before).kind !== "folder" && !own.has(path),
      )
      .map(({ path }) => path),
  );
  const lost = new Map<RawPath, RawPath>();
  if (replaced.size === 0) return lost;
  for (const { path, now } of picked) {
    const folder = now === undefined ? [...foldersOf(path)].find((at) => replaced.has(at)) : undefined;
    if (folder !== undefined) lost.set(path, folder);
  }
  return lost;
}

type WorkFiles = Pick<JudgedWork, "delivered" | "others">;

/** Says it of the files that it is about. */
export function withWhy<T extends WorkFiles>(work: T, why: Admitted["why"]): T {
  if (why.size === 0) return work;
  const texts = new Map([...why].map(([path, text]) => [toText(path), text]));
  const add = (file: WorkFile): WorkFile => {
    const text = texts.get(file.path);
    return text === undefined ? file : { ...file, why: text };
  };
  return { ...work, delivered: work.delivered.map(add), others: work.others.map(add) };
}

/**
 * As git can carry them, for work that comes back as a commit: files are 644 or 755, folders have no mode, and an empty folder
 * is none. Git's own folder stays as it is.
 */
export function inGitForm(base: Manifest, picked: readonly Change[]): Admitted {
  const why = new Map<RawPath, string>();
  const kept = new Map<RawPath, Change>();
  for (const change of picked) {
    const { path, now, before } = change;
    if (now === undefined || now.kind === "link" || isRepository(change)) kept.set(path, change);
    else if (now.kind === "folder") {
      // It is there when something is in it.
      if (before !== undefined && before.kind !== "folder") kept.set(path, { path, how: "removed", before });
    } else keepFile(change, { kept, why });
  }
  const filled = new Set(
    [...kept.values()].filter(({ now }) => now !== undefined).flatMap(({ path }) => [...foldersOf(path)]),
  );
  for (const change of picked) {
    const { path, now, before } = change;
    if (now?.kind !== "folder" || isRepository(change)) continue;
    if (filled.has(path) && before?.kind !== "folder") kept.set(path, { ...change, now: { ...now, mode: 0o755 } });
    else why.set(path, before?.kind === "folder" ? "git keeps no modes of folders" : "git keeps no empty folders");
  }
  for (const [path, before] of emptied(base, kept)) kept.set(path, { path, how: "removed", before });
  return { picked: [...kept.values()].toSorted(byPath), why };
}

interface Taken {
  readonly kept: Map<RawPath, Change>;
  readonly why: Map<RawPath, string>;
}

function keepFile(change: Change, { kept, why }: Taken): void {
  const { path, now, before } = change;
  if (now === undefined) return;
  const mode = gitModeOf(now) === "100755" ? 0o755 : 0o644;
  const isMode = before !== undefined && isSameEntry({ ...before, mode }, { ...now, mode });
  const lost = `git keeps no mode but 644 and 755: ${now.mode.toString(8)} comes back as ${mode.toString(8)}`;
  if (isMode && gitModeOf(before) === gitModeOf(now)) why.set(path, lost);
  else {
    if (now.mode !== mode && now.mode !== before?.mode) why.set(path, lost);
    kept.set(path, { ...change, now: { ...now, mode } });
  }
}

/** Folders of the beginning in which no file is left. */
function emptied(base: Manifest, kept: ReadonlyMap<RawPath, Change>): ReadonlyMap<RawPath, TreeEntry> {
  const candidates = new Map<RawPath, TreeEntry>();
  for (const change of kept.values()) {
    if (change.now !== undefined || change.before?.kind === "folder" || isRepository(change)) continue;
    for (const folder of foldersOf(change.path)) {
      const entry = kept.has(folder) ? undefined : base.get(folder);
      if (entry?.kind === "folder") candidates.set(folder, entry);
    }
  }
  if (candidates.size === 0) return candidates;
  const keep = (path: RawPath): void => {
    for (const folder of foldersOf(path)) candidates.delete(folder);
  };
  for (const [path, { kind }] of base) if (kind !== "folder" && !kept.has(path)) keep(path);
  for (const { path, now } of kept.values()) if (now !== undefined) keep(path);
  return candidates;
}
