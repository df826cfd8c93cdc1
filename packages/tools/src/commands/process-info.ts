/**
 * The processes of a command: what they are, what they wait for and what they have used. Reads only, and only below the
 * given processes; empty without /proc.
 */
import { readFileSync } from "node:fs";
import { attempt } from "../attempt.ts";
import { descriptorOf, inputWait, type InputWait } from "./input-wait.ts";
import { argumentsOf, childrenOf, listProc, namespacePids, readProc, readProcStat } from "./proc-stat.ts";

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  /** Its arguments on one line, or its name in brackets. */
  readonly command: string;
  /** R, S, D, Z, T … */
  readonly state: string;
  readonly waitChannel: string | undefined;
  readonly cpuMs: number;
  readonly runningMs: number;
  readonly openSockets: number;
  /** With the pid, it names one process for good. */
  readonly startTicks: string;
  /** Input it waits for that does not come. */
  readonly input: InputWait | undefined;
  /** Pipes it has open, and those it can write to. */
  readonly pipes: readonly string[];
  readonly feeds: readonly string[];
  /** Started as `sh -c …`. */
  readonly hasCommandLine: boolean;
  /** Its standard input is empty. */
  readonly hasNoInput: boolean;
  /** As a shell without job control starts background commands. */
  readonly ignoresInterrupt: boolean;
  /** First of its pid namespace: it adopts orphans. */
  readonly isInit: boolean;
}

/** The given processes with all below them. Cheap: one small file each. */
export interface TreeUse {
  readonly pids: readonly number[];
  readonly cpuMs: number;
}

/** The unit of /proc, whatever the kernel uses itself. */
const TICK_MS = 10;
/** Of a larger tree a part is inspected. */
const MAX_PROCESSES = 500;
const MAX_COMMAND = 300;
/** SIGINT and SIGQUIT in the masks of /proc/PID/status. */
const INTERRUPTS = 0x6n;
const MAX_DESCRIPTORS = 256;

export function treeUse(roots: readonly number[]): TreeUse {
  const pids = descendants(roots);
  const cpuMs = pids.reduce((sum, pid) => sum + (readProcStat(pid)?.cpuTicks ?? 0) * TICK_MS, 0);
  return { pids, cpuMs };
}

/** undefined when it has ended. */
export function inspectProcess(pid: number): ProcessInfo | undefined {
  const stat = readProcStat(pid);
  if (stat === undefined) return undefined;
  const channel = readProc(pid, "wchan").trim();
  const descriptors = descriptorsOf(pid);
  return {
    pid,
    parent: stat.parent,
    command: commandOf(pid, stat.name),
    state: stat.state,
    waitChannel: channel === "" || channel === "0" ? undefined : channel,
    cpuMs: stat.cpuTicks * TICK_MS,
    runningMs: Math.max(0, upMs() - Number(stat.startTicks) * TICK_MS),
    startTicks: stat.startTicks,
    openSockets: descriptors.filter(({ kind }) => kind === "socket").length,
    input: stat.state === "S" ? inputWait(pid) : undefined,
    pipes: descriptors.filter(({ kind }) => kind === "pipe").map(({ source }) => source),
    feeds: descriptors.filter(({ kind, canWrite }) => kind === "pipe" && canWrite).map(({ source }) => source),
    hasCommandLine: /^-l?c$/.test(argumentsOf(pid)[1] ?? ""),
    hasNoInput: (descriptorOf(pid, 0)?.kind ?? "other") === "other",
    ignoresInterrupt: (ignoredSignals(pid) & INTERRUPTS) === INTERRUPTS,
    isInit: namespacePids(pid).at(-1) === "1",
  };
}

function descendants(roots: readonly number[]): number[] {
  const found = new Set(roots);
  for (const pid of found) {
    if (found.size >= MAX_PROCESSES) break;
    for (const child of childrenOf(pid)) found.add(child);
  }
  return [...found].filter((pid) => readProcStat(pid) !== undefined);
}

function commandOf(pid: number, name: string): string {
  const line = readProc(pid, "cmdline").replace(/\0+$/, "").split("\0").join(" ");
  return line === "" ? `[${name}]` : line.slice(0, MAX_COMMAND);
}

function descriptorsOf(pid: number) {
  return listProc(pid, "fd")
    .slice(0, MAX_DESCRIPTORS)
    .flatMap((fd) => {
      const found = descriptorOf(pid, Number(fd));
      return found === undefined ? [] : [{ ...found, canWrite: canWrite(pid, fd) }];
    });
}

/** Access mode 0 is read-only. */
function canWrite(pid: number, fd: string): boolean {
  const flags = /^flags:\s*(\d+)/m.exec(readProc(pid, `fdinfo/${fd}`))?.[1] ?? "0";
  return (Number.parseInt(flags, 8) & 3) !== 0;
}

function ignoredSignals(pid: number): bigint {
  return BigInt(`0x${/^SigIgn:\s*([\da-f]+)/m.exec(readProc(pid, "status"))?.[1] ?? "0"}`);
}

function upMs(): number {
  return Number(attempt(() => readFileSync("/proc/uptime", "utf8"))?.split(" ")[0] ?? 0) * 1000;
}
