/**
 * Changes as git can carry them, for work that comes back as a commit: files are 644 or 755, folders have no mode, and an
 * empty folder is none. Git's own folder is none of this.
 */
import { gitModeOf } from "../git/git-tree.ts";
import {
  byPath,
  foldersOf,
  isSameEntry,
  type Change,
  type Manifest,
  type RawPath,
  type TreeEntry,
} from "../tree/manifest.ts";
import { isRepository } from "./pick.ts";

export interface InGitForm {
  /** In order of path. */
  readonly picked: readonly Change[];
  /** What git has no place for, and why. */
  readonly why: ReadonlyMap<RawPath, string>;
}

/** Of changes that are a whole tree with the beginning. */
export function inGitForm(base: Manifest, picked: readonly Change[]): InGitForm {
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
