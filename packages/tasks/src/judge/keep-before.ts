/**
 * What there was before agents of earlier tasks whose changes nobody judged, kept with the task that begins: as changes to its
 * beginning that take theirs back, so that its checks can be run as if they had never been there.
 */
import { copyFileSync, linkSync, lstatSync, mkdirSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { toRaw, toSystem, type RawPath } from "@heddle/tools/raw-path";
import { readFrozenWork } from "../tree/freeze-work.ts";
import { FILES, writeWork } from "../tree/manifest-file.ts";
import { parentOf, type Change, type TreeEntry } from "../tree/manifest.ts";
import { makeWhole } from "../tree/new-folder.ts";
import { beforeFolder } from "./task-rooms.ts";

/** At one path. */
export interface Before {
  /** Absent: there was nothing. */
  readonly entry?: TreeEntry | undefined;
  /** Where its content is kept, absolute. */
  readonly at: RawPath;
}

/** Whether it is there to be put: a file by its size, for its content was hashed when it was kept. */
export function isKept({ entry, at }: Before): boolean {
  if (entry === undefined || entry.kind === "folder") return true;
  try {
    const stat = lstatSync(toSystem(at));
    return entry.kind === "file" ? stat.isFile() && stat.size === entry.size : stat.isSymbolicLink();
  } catch {
    return false;
  }
}

/** Undefined: it is as it was. */
export function takingBack(path: RawPath, { entry }: Before, now: TreeEntry | undefined): Change | undefined {
  if (entry === undefined) return now === undefined ? undefined : { path, how: "removed", before: now };
  return now === undefined ? { path, how: "added", now: entry } : { path, how: "changed", now: entry, before: now };
}

export async function keepBefore(
  into: string,
  changes: readonly Change[],
  { at, signal }: { readonly at: (path: RawPath) => RawPath; readonly signal: AbortSignal },
): Promise<void> {
  await makeWhole(into, signal, async (dir) => {
    const folder = join(dir, FILES);
    mkdirSync(folder, { mode: 0o700 });
    for (const { path, now } of changes) {
      if (now === undefined) continue;
      const to = `${toRaw(folder)}/${path}`;
      mkdirSync(toSystem(now.kind === "folder" ? to : parentOf(to)), { recursive: true, mode: 0o700 });
      if (now.kind === "link") symlinkSync(readlinkSync(toSystem(at(path)), "buffer"), toSystem(to));
      else if (now.kind === "file") shared(toSystem(at(path)), toSystem(to));
    }
    await writeWork(dir, { changes }, signal);
  });
}

function shared(from: string | Buffer, to: string | Buffer): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** With where each has its content; undefined: nothing was left, or it cannot be taken back. */
export async function readBefore(home: string, taskId: string): Promise<readonly Change[] | undefined> {
  const kept = await readFrozenWork(beforeFolder(home, taskId)).catch(() => undefined);
  return kept?.changes.map((change) => (change.now === undefined ? change : { ...change, from: kept.folder }));
}
