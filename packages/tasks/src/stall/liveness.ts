/**
 * Whether anything moves: bytes and events are told, and only while they are silent the processes (CPU, comings and goings)
 * and the files of the work are looked at. A quiet test run that computes is alive; one that sleeps for ever is not.
 */
import { treeUse, type TreeUse } from "@heddle/tools";
import { newestChange } from "./newest-change.ts";

export interface LivenessOptions {
  readonly folder: string;
  readonly pids: () => Promise<readonly number[]>;
  readonly now: () => number;
}

export interface Liveness {
  /** The model, a command or the turn has produced something. */
  hear(): void;
  /** How long nothing has moved. */
  quietMs(): Promise<number>;
}

/** Less is the tick of an idle runtime. */
const WORKING_SHARE = 0.01;

export function createLiveness({ folder, pids, now }: LivenessOptions): Liveness {
  let aliveAt = now();
  let lookedAt = now();
  let heardSinceLook = false;
  let use: TreeUse | undefined;
  let changedAt: number | undefined;

  function moved(next: TreeUse, elapsedMs: number): boolean {
    if (use === undefined) return false;
    const before = new Set(use.pids);
    const isSame = next.pids.length === before.size && next.pids.every((pid) => before.has(pid));
    return !isSame || next.cpuMs - use.cpuMs > elapsedMs * WORKING_SHARE;
  }

  return {
    hear() {
      heardSinceLook = true;
      aliveAt = now();
    },
    async quietMs() {
      const next = treeUse(await pids());
      const elapsedMs = Math.max(1, now() - lookedAt);
      // Files come last: looking at them costs the most.
      const isAlive = heardSinceLook || moved(next, elapsedMs);
      const change = isAlive ? changedAt : newestChange(folder);
      if (isAlive || (changedAt !== undefined && change !== changedAt)) aliveAt = heardSinceLook ? aliveAt : now();
      use = next;
      changedAt = change;
      lookedAt = now();
      heardSinceLook = false;
      return now() - aliveAt;
    },
  };
}
