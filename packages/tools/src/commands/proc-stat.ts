/** One process in /proc/PID. */
import { readdirSync, readFileSync } from "node:fs";
import { attempt } from "../attempt.ts";

export interface ProcStat {
  readonly name: string;
  /** R, S, D, Z, T … */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** User and system time, in ticks of a hundredth of a second. */
  readonly cpuTicks: number;
  /** Start time in ticks since the boot: with the pid, it names one process for good. */
  readonly startTicks: string;
}

/** undefined: there is no such process, or no /proc. */
export function readProcStat(pid: number): ProcStat | undefined {
  const stat = readProc(pid, "stat");
  // The name is in brackets and may itself contain brackets.
  const end = stat.lastIndexOf(")");
  const fields = stat.slice(end + 2).split(" ");
  const [state, parent, group, session] = fields;
  const startTicks = fields[19];
  if (end < 0 || state === undefined || startTicks === undefined) return undefined;
  return {
    name: stat.slice(stat.indexOf("(") + 1, end),
    state,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    cpuTicks: Number(fields[11]) + Number(fields[12]),
    startTicks,
  };
}

/** It has ended, and its parent has not reaped it yet. */
export function isDeadProcess({ state }: Pick<ProcStat, "state">): boolean {
  return state === "Z" || state === "X";
}

/** Its pid in every namespace it is in, the innermost last. */
export function namespacePids(pid: number): string[] {
  return /^NSpid:\s*(.*)$/m.exec(readProc(pid, "status"))?.[1]?.split(/\s+/) ?? [];
}

/** Every thread has its own list of the children it started. Empty where the kernel has no such lists. */
export function childrenOf(pid: number): number[] {
  return listProc(pid, "task").flatMap((thread) =>
    readProc(pid, `task/${thread}/children`).split(" ").filter(Boolean).map(Number),
  );
}

export function argumentsOf(pid: number): string[] {
  return readProc(pid, "cmdline").split("\0").slice(0, -1);
}

/** Empty when the process has ended or belongs to another user. */
export function readProc(pid: number | "self", file: string): string {
  return attempt(() => readFileSync(`/proc/${pid}/${file}`, "utf8")) ?? "";
}

export function listProc(pid: number | "self", folder: string): string[] {
  return attempt(() => readdirSync(`/proc/${pid}/${folder}`)) ?? [];
}
