/**
 * Whether a command could reach a path at all: by the permission bits of the folders above it, without root's
 * capabilities. What is unreachable inside needs no cover, and could not be covered from there.
 */
import { statSync } from "node:fs";
import { dirname } from "node:path";

export function isReachable(path: string): boolean {
  const uid = process.getuid?.() ?? 0;
  const groups = [process.getgid?.() ?? 0, ...(process.getgroups?.() ?? [])];
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (!canEnter(folder, uid, groups)) return false;
    if (folder === "/") return true;
  }
}

function canEnter(folder: string, uid: number, groups: readonly number[]): boolean {
  try {
    const stat = statSync(folder);
    if (stat.uid === uid) return (stat.mode & 0o100) !== 0;
    if (groups.includes(stat.gid)) return (stat.mode & 0o010) !== 0;
    return (stat.mode & 0o001) !== 0;
  } catch {
    return false;
  }
}
