/**
 * A cgroup (version 2) for one sandbox, where the host lets this user make one: everything inside shares its limits. Where
 * one may be made is found by making it: the group of this process or one above it, the first that hands `pids` and
 * `memory` on to its children.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../attempt.ts";
import { readProcStat } from "../commands/proc-stat.ts";
import type { LimitsInForce } from "./limits.ts";

const PREFIX = "heddle-";
const ROOTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

export interface Cgroup extends Disposable {
  /** The file a process writes its id to in order to come in; its children come along. */
  readonly procs: string;
  /** Brings a process in that this user owns, with all it has started so far. */
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
  // A machine without swap has no such file, and one with it would let a command use that up instead.
  attempt(() => writeFileSync(join(folder, "memory.swap.max"), "0"));
  const procs = join(folder, "cgroup.procs");
  return {
    procs,
    add(pids) {
      for (const pid of pids) writeFileSync(procs, String(pid));
    },
    [Symbol.dispose]() {
      // Whoever is still ending keeps it; the next Heddle that opens one removes it.
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

/** What a killed Heddle left; a group with a process in it cannot be removed, whoever tries. */
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
