/**
 * Works out what a patch does to every file before anything is written: operations run in order on an overlay of the
 * disk, and the difference to the disk is the plan. One operation that does not fit fails the whole patch.
 */
import { HeddleError, type FileChangeEntry } from "@heddle/protocol";
import { refuseNewMarks } from "../calls/redaction-mark.ts";
import { applyChunks } from "./apply-chunks.ts";
import type { PatchOperation } from "./parse.ts";
import { unifiedDiff } from "./unified-diff.ts";

/** The text of a file, or undefined when there is none. */
export type ReadText = (path: string) => Promise<string | undefined>;

export type PlannedStep =
  | { readonly kind: "create"; readonly path: string; readonly content: string }
  | { readonly kind: "replace"; readonly path: string; readonly before: string; readonly content: string }
  | { readonly kind: "remove"; readonly path: string; readonly before: string };

export interface PatchPlan {
  /** In the order to carry out: everything new is on disk before anything old is removed. */
  readonly steps: readonly PlannedStep[];
  readonly changes: readonly FileChangeEntry[];
}

interface Overlaid {
  readonly before: string | undefined;
  now: string | undefined;
}

export async function planPatch(
  operations: readonly PatchOperation[],
  disk: { readonly absolute: (path: string) => string; readonly readText: ReadText },
): Promise<PatchPlan> {
  const overlay = new Map<string, Overlaid>();
  const moves = new Map<string, string>();
  const open = async (path: string): Promise<Overlaid> => {
    const known = overlay.get(path);
    if (known !== undefined) return known;
    const before = await disk.readText(path);
    const entry: Overlaid = { before, now: before };
    overlay.set(path, entry);
    return entry;
  };
  for (const operation of operations) {
    const path = disk.absolute(operation.path);
    const file = await open(path);
    if (operation.kind === "add") {
      if (file.now !== undefined) throw refused(`${operation.path} exists already; use "*** Update File"`);
      file.now = operation.content;
      continue;
    }
    if (file.now === undefined) throw refused(`${operation.path} does not exist`);
    if (operation.kind === "delete") {
      file.now = undefined;
      continue;
    }
    const text = applyChunks(file.now, operation.chunks, operation.path);
    const movedTo = operation.moveTo === undefined ? path : disk.absolute(operation.moveTo);
    if (movedTo === path) {
      file.now = text;
      continue;
    }
    const target = await open(movedTo);
    if (target.now !== undefined) throw refused(`cannot move to ${operation.moveTo}: it exists already`);
    file.now = undefined;
    target.now = text;
    moves.set(path, movedTo);
  }
  const before = [...overlay.values()].flatMap((file) => file.before ?? []);
  for (const [path, { now = "" }] of overlay) refuseNewMarks(path, before, now);
  return { steps: stepsOf(overlay), changes: changesOf(overlay, moves) };
}

function stepsOf(overlay: ReadonlyMap<string, Overlaid>): PlannedStep[] {
  const writes: PlannedStep[] = [];
  const removals: PlannedStep[] = [];
  for (const [path, { before, now }] of overlay) {
    if (before === now) continue;
    if (now === undefined) removals.push({ kind: "remove", path, before: before ?? "" });
    else if (before === undefined) writes.push({ kind: "create", path, content: now });
    else writes.push({ kind: "replace", path, before, content: now });
  }
  return [...writes, ...removals];
}

function changesOf(overlay: ReadonlyMap<string, Overlaid>, moves: ReadonlyMap<string, string>): FileChangeEntry[] {
  const movedInto = new Set<string>();
  const changes: FileChangeEntry[] = [];
  for (const [path, { before, now }] of overlay) {
    const movedTo = moves.get(path);
    const target = movedTo === undefined ? undefined : overlay.get(movedTo);
    if (movedTo !== undefined && now === undefined && target?.before === undefined && target?.now !== undefined) {
      movedInto.add(movedTo);
      changes.push({ path, kind: "update", movedTo, ...unifiedDiff(before ?? "", target.now) });
    } else if (before !== now && !movedInto.has(path)) {
      const kind = now === undefined ? "delete" : before === undefined ? "add" : "update";
      changes.push({ path, kind, ...unifiedDiff(before ?? "", now ?? "") });
    }
  }
  return changes;
}

function refused(message: string): HeddleError {
  return new HeddleError("tool.failed", message);
}
