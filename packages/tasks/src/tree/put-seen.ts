/** Whether what lies somewhere is still what a plan saw there. */
import type { BigIntStats } from "node:fs";
import { CLOCK_STEP_MS } from "@heddle/tools/files";
import type { PutStep } from "./put-intent.ts";
import { unreadMark, type EntryTaker } from "./take-entry.ts";
import { kindOf } from "./walk-tree.ts";

/** Stands for the hash of a file that its maker has closed. */
export const UNREADABLE = "unreadable";

type Seen = Pick<NonNullable<PutStep["was"]>, "seen" | "isFresh">;

/** Taken before the content is read: whoever changes it from then on changes this. */
export function seenOf(stat: BigIntStats): Seen {
  const { dev, ino, size, mtimeNs, ctimeNs } = stat;
  // The clock that files are stamped with has steps: what changed within one may change once more and look the same.
  const isFresh = Number(ctimeNs / 1_000_000n) > Date.now() - CLOCK_STEP_MS;
  return { seen: [dev, ino, size, mtimeNs, ctimeNs].join(" "), ...(isFresh ? { isFresh } : {}) };
}

/** By all but the change time, which moves with a hard link elsewhere: whoever writes to a file sets its time. */
export function isUnwritten(stat: BigIntStats, seen: string): boolean {
  const { dev, ino, size, mtimeNs } = stat;
  return seen.startsWith(`${[dev, ino, size, mtimeNs].join(" ")} `);
}

/** Moving a file changes its change time and nothing else. */
export function isSameMoved(a: BigIntStats, b: BigIntStats | undefined): boolean {
  return a.dev === b?.dev && a.ino === b.ino && a.size === b.size && a.mtimeNs === b.mtimeNs;
}

/** Also when it is as wanted already, where `isResumed`. A change time moves with a hard link elsewhere, so content decides. */
export async function isAsPlanned(
  { path, was, wanted }: PutStep,
  stat: BigIntStats,
  { taker, isResumed }: { readonly taker: EntryTaker; readonly isResumed: boolean },
): Promise<boolean> {
  const kind = kindOf(stat);
  if (kind === "folder") return was?.kind === "folder" || (isResumed && wanted?.kind === "folder");
  if (was?.kind === kind && was.seen !== undefined && was.seen === seenOf(stat).seen) {
    if (was.isFresh !== true || was.sha256 === UNREADABLE) return true;
  }
  if (kind === "other") return was?.kind === "other";
  const size = Number(stat.size);
  if (was?.kind === kind && was.sha256 === unreadMark({ size, mtimeNs: stat.mtimeNs })) return true;
  try {
    const now = await taker.take(path);
    if (now === undefined) return true;
    if (was?.kind === now.kind && was.sha256 === now.sha256) return true;
    return isResumed && wanted?.kind === now.kind && wanted.sha256 === now.sha256;
  } catch {
    // One that cannot be read is as it was planned, or nobody can tell whose it is.
    return isResumed;
  }
}
