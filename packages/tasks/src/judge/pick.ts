/** What of the frozen work goes into a room, and how it is told. Nothing here looks at a disk. */
import { MAX_WORK_FILES, type JudgedWork, type WorkFile, type WorkReview } from "@heddle/protocol/tasks";
import type { RoomLayer } from "@heddle/tools/room";
import { toText } from "@heddle/tools/raw-path";
import { globList, globOf, mayHoldMatches } from "../checks/globs.ts";
import { parentOf, type Change, type FrozenWork, type KeptTree, type TreeEntry } from "../tree/manifest.ts";
import { completePicks } from "../tree/picked-changes.ts";
import { roleOf } from "./file-role.ts";

/** Of git's own folder, the agent's is never part of what is delivered. */
export function isRepository({ path }: Pick<Change, "path">): boolean {
  return roleOf(toText(path)) === "repository";
}

/** Whether the content of a change is needed: all of it, or what is delivered, and what git checks read. */
export function isWanted(deliver: readonly string[] | undefined): (path: string) => boolean {
  if (deliver === undefined) return () => true;
  const isDelivered = globList(deliver);
  return (path) => isRepository({ path }) || isDelivered(toText(path));
}

/** Whether what is delivered may lie below a folder. */
export function mayDeliverBelow(deliver: readonly string[]): (folder: string) => boolean {
  const globs = deliver.filter((pattern) => !pattern.startsWith("!")).map(globOf);
  return (folder) => globs.some((glob) => mayHoldMatches(glob, toText(folder), false));
}

export function pickDelivered(
  { manifest }: Pick<KeptTree, "manifest">,
  { changes }: Pick<FrozenWork, "changes">,
  deliver: readonly string[],
): readonly Change[] {
  const isDelivered = globList(deliver);
  const picked = changes.filter(
    (change) => !isRepository(change) && isUsable(change) && isDelivered(toText(change.path)),
  );
  return completePicks(manifest, changes, picked);
}

/** Everything that can be in a room. */
export function pickAll(changes: readonly Change[]): readonly Change[] {
  return changes.filter(isUsable);
}

/** A pipe or a socket has no content that could be judged. */
function isUsable({ now }: Change): boolean {
  return now?.kind !== "other";
}

export function layerOf({ folder }: Pick<FrozenWork, "folder">, picked: readonly Change[]): RoomLayer {
  return {
    folder,
    paths: picked.filter(({ how }) => how !== "removed").map(({ path }) => path),
    modes: new Map(picked.flatMap(({ path, now }) => (now === undefined ? [] : [[path, now.mode] as const]))),
    // What is in a folder goes before it.
    removed: picked
      .filter(({ how }) => how === "removed")
      .map(({ path }) => path)
      .toReversed(),
    from: new Map(picked.flatMap(({ path, from }) => (from === undefined ? [] : [[path, from] as const]))),
    times: new Map(
      picked.flatMap(({ path, from, now }) =>
        from === undefined || now === undefined ? [] : [[path, timeOf(now)] as const],
      ),
    ),
  };
}

/** It came or went, or is of another kind, mode or size. */
export function isSeenUnread({ before, now }: Change): boolean {
  if (before === undefined || now === undefined) return true;
  return before.kind !== now.kind || before.mode !== now.mode || before.size !== now.size;
}

/** In milliseconds. */
export function timeOf({ mtimeNs }: TreeEntry): number {
  return Number(mtimeNs) / 1e6;
}

/** Changes that people think of: folders that came or went only where nothing else says it. */
export function telling(changes: readonly Change[]): readonly Change[] {
  const around = new Set(changes.map(({ path }) => parentOf(path)));
  return changes.filter(
    ({ path, how, now, before }) => how === "changed" || (now ?? before)?.kind !== "folder" || !around.has(path),
  );
}

export function toWorkFile({ path, how, now }: Change): WorkFile {
  const text = toText(path);
  const isHashed = now !== undefined && now.sha256 !== "";
  const link = now?.kind === "link" ? { leadsTo: toText(now.target ?? "") } : {};
  return { path: text, how, role: roleOf(text), ...(isHashed ? { sha256: now.sha256 } : {}), ...link };
}

export function workFiles(
  picked: readonly Change[],
  changes: readonly Change[],
): Pick<JudgedWork, "delivered" | "deliveredCount" | "others" | "othersCount"> {
  const own = new Set(picked.map(({ path }) => path));
  // Git's own are many, and what people look for comes first.
  const all = telling(changes).toSorted((a, b) => Number(isRepository(a)) - Number(isRepository(b)));
  const [delivered, others] = [all.filter(({ path }) => own.has(path)), all.filter(({ path }) => !own.has(path))];
  return {
    delivered: delivered.slice(0, MAX_WORK_FILES).map(toWorkFile),
    deliveredCount: delivered.length,
    others: others.slice(0, MAX_WORK_FILES).map(toWorkFile),
    othersCount: others.length,
  };
}

/** Why the owner is asked. */
export type Reason = WorkReview["reasons"][number];

/** With as many of its files as can be stored, and how many there are. */
export function reasonOf(kind: Reason["kind"], message: string, files: readonly string[] = []): Reason {
  const count = files.length > MAX_WORK_FILES ? { count: files.length } : {};
  return { kind, message, files: files.slice(0, MAX_WORK_FILES), ...count };
}
