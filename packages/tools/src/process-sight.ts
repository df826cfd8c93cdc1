/**
 * What the kernel says about the processes of a command: what they are, what they wait for and what they have used. Reads
 * only, and only below the processes it is given; on a system without /proc there is nothing to see.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readProcStat } from "./proc-stat.ts";

export interface ProcessSight {
  readonly pid: number;
  readonly parent: number;
  /** Its arguments on one line, or its name in brackets. */
  readonly command: string;
  /** Of the kernel: R, S, D, Z, T … */
  readonly state: string;
  readonly waitChannel: string | undefined;
  readonly cpuMs: number;
  readonly runningMs: number;
  readonly openSockets: number;
  /** It is in the middle of reading its standard input, and nothing comes. */
  readonly readsStdin: boolean;
}

/** The processes below these, the given ones included, with what they have used. Cheap: one small file each. */
export interface TreeUse {
  readonly pids: readonly number[];
  readonly cpuMs: number;
}

/** Kernels count in hundredths of a second for everybody else, whatever they count in themselves. */
const TICK_MS = 10;
/** A tree that is larger is looked at in part. */
const MAX_PROCESSES = 500;
const MAX_COMMAND = 300;
/** Numbers of the system call read(2) by machine. */
const READ_CALL: Readonly<Record<string, string>> = { x64: "0", arm64: "63" };

export function treeUse(roots: readonly number[]): TreeUse {
  const pids = descendants(roots);
  const cpuMs = pids.reduce((sum, pid) => sum + (readProcStat(pid)?.cpuTicks ?? 0) * TICK_MS, 0);
  return { pids, cpuMs };
}

/** Whoever has ended meanwhile is left out. */
export function sightOf(pid: number): ProcessSight | undefined {
  const stat = readProcStat(pid);
  if (stat === undefined) return undefined;
  const channel = read(`/proc/${pid}/wchan`).trim();
  const links = descriptors(pid);
  return {
    pid,
    parent: stat.parent,
    command: commandOf(pid, stat.name),
    state: stat.state,
    waitChannel: channel === "" || channel === "0" ? undefined : channel,
    cpuMs: stat.cpuTicks * TICK_MS,
    runningMs: Math.max(0, upMs() - Number(stat.startTicks) * TICK_MS),
    openSockets: [...links.values()].filter((target) => target.startsWith("socket:")).length,
    readsStdin: readsStdin(pid, { state: stat.state, channel, stdin: links.get(0) ?? "" }),
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

/** Every thread of a process has its own list of the children it started. */
function childrenOf(pid: number): number[] {
  const threads = list(`/proc/${pid}/task`);
  return threads.flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`)
      .split(" ")
      .filter((name) => name !== "")
      .map(Number),
  );
}

function commandOf(pid: number, name: string): string {
  const words = read(`/proc/${pid}/cmdline`).replace(/\0+$/, "").split("\0").join(" ");
  return words === "" ? `[${name}]` : words.slice(0, MAX_COMMAND);
}

function descriptors(pid: number): ReadonlyMap<number, string> {
  const links = new Map<number, string>();
  for (const fd of list(`/proc/${pid}/fd`)) {
    try {
      links.set(Number(fd), readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      // Closed since it was listed.
    }
  }
  return links;
}

/** By the system call it is in where that may be seen, else by what kind of thing it sleeps on. */
function readsStdin(
  pid: number,
  { state, channel, stdin }: { readonly state: string; readonly channel: string; readonly stdin: string },
): boolean {
  const isOpenEnd = stdin.startsWith("pipe:") || stdin.includes("/pts/") || stdin.includes("/tty") || isFifo(stdin);
  if (state !== "S" || !isOpenEnd) return false;
  const [call, first] = read(`/proc/${pid}/syscall`).split(" ");
  if (call !== undefined && call !== "" && first !== undefined)
    return call === READ_CALL[process.arch] && first === "0x0";
  return /pipe_read|pipe_wait|n_tty_read|wait_woken/.test(channel);
}

/** A named pipe that was unlinked once it was open. */
function isFifo(target: string): boolean {
  return target.includes("/pipes/") || target.endsWith(" (deleted)");
}

function upMs(): number {
  return Number(read("/proc/uptime").split(" ")[0] ?? 0) * 1000;
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
