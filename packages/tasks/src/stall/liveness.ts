/**
 * Whether anything moves: output and events, and only while there are none, processes (CPU, new and ended ones) and files.
 * A quiet test run that computes is alive; one that sleeps is not.
 */
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { treeUse, type ProcessInfo, type TreeUse } from "@heddle/tools";

/** Less is the tick of an idle runtime. */
const WORKING_SHARE = 0.01;

interface LivenessOptions {
  readonly folder: string;
  /** Of the running commands. */
  readonly pids: () => readonly number[];
  readonly now?: () => number;
}

export function createLiveness({ folder, pids, now = () => performance.now() }: LivenessOptions) {
  let aliveAt = now();
  let lookedAt = now();
  let changedSinceLook = false;
  let use: TreeUse | undefined;
  let changedAt: number | undefined;

  function moved(next: TreeUse, elapsedMs: number): boolean {
    if (use === undefined) return false;
    const before = new Set(use.pids);
    const isSame = next.pids.length === before.size && next.pids.every((pid) => before.has(pid));
    return !isSame || next.cpuMs - use.cpuMs > elapsedMs * WORKING_SHARE;
  }

  return {
    /** The model, a command or the turn has produced something. */
    receive(): void {
      changedSinceLook = true;
      aliveAt = now();
    },
    /** How long nothing has moved. */
    quietMs(): number {
      const next = treeUse(pids());
      const elapsedMs = Math.max(1, now() - lookedAt);
      // Files come last: looking at them costs the most.
      const isAlive = changedSinceLook || moved(next, elapsedMs);
      const change = isAlive ? changedAt : newestChange(folder);
      if (isAlive || (changedAt !== undefined && change !== changedAt)) aliveAt = changedSinceLook ? aliveAt : now();
      use = next;
      changedAt = change;
      lookedAt = now();
      changedSinceLook = false;
      return now() - aliveAt;
    },
  };
}

/**
 * A process that waits for input is looked at by itself: nothing but input ends that wait, so a busy server in the background
 * does not hide a prompt. Takes the processes that wait now, and returns the one that has waited longest.
 */
export function createInputWaits() {
  let since = new Map<string, number>();
  return (readers: readonly ProcessInfo[]): { readonly reader: ProcessInfo; readonly waitedMs: number } | undefined => {
    const now = performance.now();
    // A process that got input has used CPU time since.
    const nameOf = ({ pid, startTicks, cpuMs }: ProcessInfo): string => `${pid}:${startTicks}:${cpuMs}`;
    since = new Map(readers.map((reader) => [nameOf(reader), since.get(nameOf(reader)) ?? now]));
    return readers
      .map((reader) => ({ reader, waitedMs: now - (since.get(nameOf(reader)) ?? now) }))
      .toSorted((a, b) => b.waitedMs - a.waitedMs)[0];
  };
}

/** Enough for an agent's work. */
const MAX_ENTRIES = 5000;
const PASSED_OVER = new Set([".git", "node_modules", ".venv", "target"]);

/** When something in a folder changed last, as far as a short look tells. A new or removed name changes its folder. */
function newestChange(folder: string): number {
  let newest = changedAt(folder);
  let left = MAX_ENTRIES;
  const folders = [folder];
  for (const path of folders) {
    for (const entry of entriesOf(path)) {
      left -= 1;
      if (left < 0) return newest;
      const inside = join(path, entry.name);
      newest = Math.max(newest, changedAt(inside));
      if (entry.isDirectory() && !PASSED_OVER.has(entry.name)) folders.push(inside);
    }
  }
  return newest;
}

/** The inode's time, which programs cannot set. */
function changedAt(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0;
}

function entriesOf(path: string) {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return [];
  }
}
