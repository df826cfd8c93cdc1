/**
 * A cgroup (version 2) for one sandbox, where this user may make one: all processes inside share its limits. The parent
 * is the group of this process or the first above it that delegates `pids` and `memory`.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../attempt.ts";
import { readProcStat } from "../commands/proc-stat.ts";
import type { LimitsInForce } from "./limits.ts";

const PREFIX = "heddle-";
const ROOTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

export interface Cgroup extends Disposable {
  /** A process that writes its id here joins, with its later children. */
  readonly procs: string;
  add(pids: readonly number[]): void;
}

let made = 0;

/** undefined where the host gives none. `roots`: where the hierarchy may be mounted. */
export function openCgroup(limits: LimitsInForce, roots: readonly string[] = ROOTS): Cgroup | undefined {
  const parent = delegatedParent(roots);
  if (parent === undefined) return undefined;
  removeAbandoned(parent);
  made += 1;
  const folder = join(parent, `${PREFIX}${ownerName(process.pid)}-${made}`);
  try {
    mkdirSync(folder);
    writeFileSync(join(folder, "pids.max"), String(limits.processes));
    writeFileSync(join(folder, "memory.max"), String(limits.memoryBytes));
  } catch {
    attempt(() => rmdirSync(folder));
    return undefined;
  }
  // Without swap there is no such file; with it, a command would fill the swap instead.
  attempt(() => writeFileSync(join(folder, "memory.swap.max"), "0"));
  const procs = join(folder, "cgroup.procs");
  return {
    procs,
    add(pids) {
      for (const pid of pids) writeFileSync(procs, String(pid));
    },
    [Symbol.dispose]() {
      // While processes are still ending it cannot be removed; the next Heddle removes it.
      attempt(() => rmdirSync(folder));
    },
  };
}

function delegatedParent(roots: readonly string[]): string | undefined {
  const own = /^0::(\/.*)$/m.exec(attempt(() => readFileSync("/proc/self/cgroup", "utf8")) ?? "")?.[1];
  if (own === undefined) return undefined;
  for (const root of roots) {
    for (let folder = join(root, own); folder.startsWith(root); folder = join(folder, "..")) {
      const handedOn = attempt(() => readFileSync(join(folder, "cgroup.subtree_control"), "utf8")) ?? "";
      const names = handedOn.trim().split(/\s+/);
      if (names.includes("pids") && names.includes("memory")) return folder;
    }
  }
  return undefined;
}

/** Left by a killed Heddle. A group with a process in it cannot be removed. */
function removeAbandoned(parent: string): void {
  for (const name of attempt(() => readdirSync(parent)) ?? []) {
    const pid = /^heddle-(\d+)-\d+-\d+$/.exec(name)?.[1];
    if (pid === undefined || name.startsWith(`${PREFIX}${ownerName(Number(pid))}-`)) continue;
    attempt(() => rmdirSync(join(parent, name)));
  }
}

/** A pid alone could come to mean another process. */
function ownerName(pid: number): string {
  return `${pid}-${readProcStat(pid)?.startTicks ?? "ended"}`;
}
