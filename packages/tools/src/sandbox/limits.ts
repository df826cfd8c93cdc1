/**
 * How many processes and how much memory a sandbox may use: what is configured, cut to half of what the host has left.
 * So a command that takes everything leaves enough for Heddle to end the turn, and several sandboxes do not use up the
 * host. `SandboxHolds` says how the kernel enforces it.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import { attempt } from "../attempt.ts";
import { listProc } from "../commands/proc-stat.ts";

export interface SandboxLimits {
  /** Processes and their threads, together. */
  readonly processes?: number | undefined;
  readonly memoryBytes?: number | undefined;
  /** Computing time of each process. */
  readonly cpuSec?: number | undefined;
  /** Half of what is held for all processes together is left to the sandboxes of child threads, which share it. */
  readonly keepsForChildren?: boolean | undefined;
}

export interface LimitsInForce {
  readonly processes: number;
  readonly memoryBytes: number;
}

/** Test runners and compilers start some ten threads a core; a browser has two hundred. */
const DEFAULT_PROCESSES = 2048;
const DEFAULT_PROCESSES_PER_CORE = 64;
/** Fewer than this cannot run a shell with a test runner in it. */
export const MIN_PROCESSES = 32;
export const MIN_MEMORY_BYTES = 128 * 2 ** 20;

/** undefined: not limited, or not known. */
export interface Headroom {
  readonly processes: number | undefined;
  readonly memoryBytes: number;
}

export function limitsFor(wanted: SandboxLimits, headroom: Headroom): LimitsInForce {
  const processes =
    wanted.processes ?? Math.max(DEFAULT_PROCESSES, DEFAULT_PROCESSES_PER_CORE * availableParallelism());
  const memoryBytes = wanted.memoryBytes ?? Number.MAX_SAFE_INTEGER;
  let inForce: number | undefined;
  return {
    processes: Math.max(MIN_PROCESSES, Math.min(processes, half(headroom.processes))),
    get memoryBytes() {
      return (inForce ??= Math.max(MIN_MEMORY_BYTES, Math.min(memoryBytes, half(headroom.memoryBytes))));
    },
  };
}

/** What is left for the sandbox itself where child threads have the other half. */
export function halfOf(whole: LimitsInForce): LimitsInForce {
  return {
    processes: Math.max(MIN_PROCESSES, Math.floor(whole.processes / 2)),
    get memoryBytes() {
      return Math.max(MIN_MEMORY_BYTES, Math.floor(whole.memoryBytes / 2));
    },
  };
}

function half(left: number | undefined): number {
  return left === undefined ? Number.MAX_SAFE_INTEGER : Math.floor(left / 2);
}

/** Memory is read only where it can be limited. */
export function readHeadroom(): Headroom {
  const groups = ownGroups();
  return {
    processes: least([cgroupRoom(groups.pids, "pids.max", "pids.current"), rlimitRoom()]),
    get memoryBytes() {
      const version2 = cgroupRoom(groups.memory, "memory.max", "memory.current");
      const version1 = cgroupRoom(groups.memory, "memory.limit_in_bytes", "memory.usage_in_bytes");
      return least([version2, version1, totalmem()]) ?? totalmem();
    },
  };
}

function least(rooms: readonly (number | undefined)[]): number | undefined {
  const known = rooms.filter((room) => room !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** The cgroup folders of this process: version 2 has one for all controllers, version 1 one for each. */
function ownGroups(): { readonly pids: readonly string[]; readonly memory: readonly string[] } {
  const lines = (readText("/proc/self/cgroup") ?? "").trimEnd().split("\n");
  const mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
  const found = { pids: [] as string[], memory: [] as string[] };
  for (const line of lines) {
    const [, controllers = "", path = "/"] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === "")
      for (const list of [found.pids, found.memory]) list.push(...mounts.map((m) => join(m, path)));
    for (const name of ["pids", "memory"] as const)
      if (controllers.split(",").includes(name)) found[name].push(join("/sys/fs/cgroup", controllers, path));
  }
  return found;
}

/** The least that is left in a group or one above it; no number in the file means no limit. */
function cgroupRoom(groups: readonly string[], max: string, current: string): number | undefined {
  const rooms: (number | undefined)[] = [];
  for (const group of groups) {
    for (let folder = group; folder.startsWith("/sys/fs/cgroup"); folder = join(folder, "..")) {
      const limit = readNumber(join(folder, max));
      const used = limit === undefined ? undefined : readNumber(join(folder, current));
      if (limit !== undefined && used !== undefined) rooms.push(Math.max(0, limit - used));
    }
  }
  return least(rooms);
}

/** Root has no such limit. Processes are counted only when the limit is small. */
function rlimitRoom(): number | undefined {
  const uid = process.getuid?.() ?? 0;
  const limit = Number(/^Max processes\s+(\d+)/m.exec(readText("/proc/self/limits") ?? "")?.[1] ?? Number.NaN);
  if (uid === 0 || Number.isNaN(limit)) return undefined;
  return limit > 16 * DEFAULT_PROCESSES ? limit : Math.max(0, limit - tasksOf(uid));
}

function tasksOf(uid: number): number {
  let count = 0;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    // It may have ended since its name was read.
    if (attempt(() => statSync(`/proc/${name}`).uid) === uid) count += listProc(Number(name), "task").length;
  }
  return count;
}

function readNumber(file: string): number | undefined {
  const text = readText(file)?.trim();
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Most names do not exist, and throwing costs more than asking. */
function readText(file: string): string | undefined {
  return attempt(() => (existsSync(file) ? readFileSync(file, "utf8") : undefined));
}
