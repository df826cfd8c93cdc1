/**
 * Has the kernel hold the limits of one sandbox, by the best means this host gives:
 *
 *   cgroup          everything inside together, processes and memory; where this user may make one
 *   pid namespace   everything inside together, processes; Linux 6.14 and newer
 *   rlimit          each command, processes, unless it runs as root of the host; each process, memory and computing time, when
 *                   they are asked for
 */
import { release } from "node:os";
import type { SandboxHolds } from "@heddle/protocol";
import { openCgroup } from "./cgroup.ts";
import { halfOf, limitsFor, readHeadroom, type SandboxLimits } from "./limits.ts";

/**
 * Pids that one command leaves to the others and to entering. Once a namespace has used all pids, the kernel never
 * reuses the first 300; the other 64 are for commands.
 */
const LEFT_TO_OTHERS = 364;
const LEAST_MAX_PID = 2 * LEFT_TO_OTHERS;

export type Limiter = ReturnType<typeof openLimiter>;

export function openLimiter(wanted: SandboxLimits) {
  const whole = limitsFor(wanted, readHeadroom());
  const limits = wanted.keepsForChildren === true ? halfOf(whole) : whole;
  const group = openCgroup(limits);
  const { cpuSec } = wanted;
  const hasRlimit = process.getuid?.() !== 0;
  // A limit per process breaks programs that map far more than they use (sanitizers, race detectors): only on request.
  const dataBytes = wanted.memoryBytes === undefined || group !== undefined ? undefined : whole.memoryBytes;
  const shellLines = (holdsPids: boolean, otherwise: string): string => {
    const lines: string[] = [];
    // Shells differ in the option.
    const { processes: max } = limits;
    if (!holdsPids && group === undefined && hasRlimit)
      lines.push(`ulimit -u ${max} 2>/dev/null || ulimit -p ${max} 2>/dev/null || ${otherwise}\n`);
    if (dataBytes !== undefined) lines.push(`ulimit -d ${Math.ceil(dataBytes / 1024)} || ${otherwise}\n`);
    if (cpuSec !== undefined) lines.push(`ulimit -t ${cpuSec} || ${otherwise}\n`);
    return lines.join("");
  };
  const maxPid = Math.max(limits.processes, LEAST_MAX_PID);
  const hasMaxPid = isPidMaxOfNamespace(release());
  const processesHeld = (holdsPids: boolean): SandboxHolds["processes"] => {
    if (group !== undefined) return { by: "cgroup", max: limits.processes };
    if (holdsPids) return { by: "pid-namespace", max: maxPid };
    return hasRlimit ? { by: "rlimit", max: limits.processes } : { by: "nothing" };
  };
  return {
    /** The largest pid of the namespace; undefined where the limit would be the host's own. */
    maxPid: hasMaxPid ? maxPid : undefined,
    /** The same for the nested namespace of a single command. */
    maxPidOfCommand: hasMaxPid ? maxPid - LEFT_TO_OTHERS : undefined,
    /** For the shell right before a command; `holdsPids`: its pid namespace limits the processes. */
    shellLines: (holdsPids: boolean) => shellLines(holdsPids, "exit 126"),
    /** The same for the script of a holder, whose variable `pids` says whether its namespace limits them. */
    holderLines: () =>
      `if [ "$pids" = held ]; then :\n${shellLines(true, "return 1")}else :\n${shellLines(false, "return 1")}fi\n`,
    /** Started outside, before the command. */
    prefix: (sh: string): readonly string[] =>
      group === undefined ? [] : [sh, "-c", 'echo 0 >"$0" && exec "$@"', group.procs],
    /** Adds running processes; `pids` is only called where there is a group for them. */
    add: (pids: () => readonly number[]) => group?.add(pids()),
    holds: (holdsPids: boolean): SandboxHolds => ({
      processes: processesHeld(holdsPids),
      memory:
        group !== undefined
          ? { by: "cgroup", maxBytes: limits.memoryBytes }
          : dataBytes === undefined
            ? { by: "nothing" }
            : { by: "rlimit", maxBytes: dataBytes },
      ...(cpuSec === undefined ? {} : { cpu: { by: "rlimit", maxSec: cpuSec } }),
    }),
    [Symbol.dispose]: () => group?.[Symbol.dispose](),
  };
}

/** Before 6.14 pid_max belongs to the whole host, and root could write it from inside any namespace. */
export function isPidMaxOfNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split(".").map(Number);
  return major > 6 || (major === 6 && minor >= 14);
}
