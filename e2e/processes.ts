/** Processes of a test, found by a word that only their command lines hold. */
import { readdirSync, readFileSync } from "node:fs";

/** Pids whose command line holds the mark, zombies and processes of other tests not among them. */
export function marked(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && commandLine(pid).includes(mark));
}

/** Empty for a process that has ended. */
function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** The processor time a process has used, in milliseconds, to ten of them: what else the machine does is not in it. */
export function usedMs(pid: number): number {
  const [, user = "0", system = "0"] =
    /^.*\) (?:\S+ ){11}(\d+) (\d+) /s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
  return (Number(user) + Number(system)) * 10;
}

/** The most memory a process has ever held, in bytes. */
export function peakMemory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}
