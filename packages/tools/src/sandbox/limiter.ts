/**
 * Has the kernel hold the limits of one sandbox, by the best means this host gives:
 *
 *   cgroup          everything inside together, processes and memory; where this user may make one
 *   pid namespace   everything inside together, processes; Linux 6.14 and newer
 *   rlimit          each command, processes, unless it runs as root of the host; each process, memory, when it is asked for
 */
import { release } from "node:os";
import type { SandboxHolds } from "@heddle/protocol";
import { openCgroup, type Cgroup } from "./cgroup.ts";
import { limitsFor, readHeadroom, type LimitsInForce, type SandboxLimits } from "./limits.ts";

/**
 * What one command leaves to the others of its sandbox, and to whoever lets the next one in. Once a namespace has given all
 * pids out, the kernel gives the first 300 to nobody any more; so that is what is left, and 64.
 */
const LEFT_TO_OTHERS = 364;
/** A command gets as much itself. */
const LEAST_MAX_PID = 2 * LEFT_TO_OTHERS;

export interface Limiter extends Disposable {
  /** The largest pid a namespace may give out; undefined where the number would be the host's own. */
  readonly maxPid: number | undefined;
  /** The same for the namespace of a single command, which lies inside the other. */
  readonly maxPidOfCommand: number | undefined;
  /** For a shell inside, right before the command; `holdsPids`: its pid namespace limits the processes. */
  shellLines(holdsPids: boolean): string;
  /** The same for the shell of a holder, which knows whether it does by its variable `pids`, and reads them from a file. */
  holderLines(): string;
  /** What a command is started with, outside. */
  prefix(sh: string): readonly string[];
  /** Brings processes in that run already; not asked for where there is nowhere to bring them. */
  add(pids: () => readonly number[]): void;
  holds(holdsPids: boolean): SandboxHolds;
}

export function openLimiter(wanted: SandboxLimits): Limiter {
  const limits = limitsFor(wanted, readHeadroom());
  const group = openCgroup(limits);
  const hasRlimit = process.getuid?.() !== 0;
  // A limit of each process breaks programs that map far more than they use (sanitizers, race detectors): only on request.
  const dataBytes = wanted.memoryBytes === undefined || group !== undefined ? undefined : limits.memoryBytes;
  const shellLines = (holdsPids: boolean, otherwise: string): string => {
    const lines: string[] = [];
    // Shells differ in the letter.
    const { processes: max } = limits;
    if (!holdsPids && group === undefined && hasRlimit)
      lines.push(`ulimit -u ${max} 2>/dev/null || ulimit -p ${max} 2>/dev/null || ${otherwise}\n`);
    if (dataBytes !== undefined) lines.push(`ulimit -d ${Math.ceil(dataBytes / 1024)} || ${otherwise}\n`);
    return lines.join("");
  };
  const maxPid = Math.max(limits.processes, LEAST_MAX_PID);
  const hasMaxPid = isPidMaxOfNamespace(release());
  return {
    maxPid: hasMaxPid ? maxPid : undefined,
    maxPidOfCommand: hasMaxPid ? maxPid - LEFT_TO_OTHERS : undefined,
    shellLines: (holdsPids) => shellLines(holdsPids, "exit 126"),
    holderLines: () =>
      `if [ "$pids" = held ]; then :\n${shellLines(true, "return 1")}else :\n${shellLines(false, "return 1")}fi\n`,
    prefix: (sh) => (group === undefined ? [] : [sh, "-c", 'echo 0 >"$0" && exec "$@"', group.procs]),
    add: (pids) => group?.add(pids()),
    holds: (holdsPids) => ({
      processes: processesHeld(limits, { group, holdsPids, hasRlimit, maxPid }),
      memory:
        group !== undefined
          ? { by: "cgroup", maxBytes: limits.memoryBytes }
          : dataBytes === undefined
            ? { by: "nothing" }
            : { by: "rlimit", maxBytes: dataBytes },
    }),
    [Symbol.dispose]: () => group?.[Symbol.dispose](),
  };
}

interface Means {
  readonly group: Cgroup | undefined;
  readonly holdsPids: boolean;
  readonly hasRlimit: boolean;
  readonly maxPid: number;
}

function processesHeld({ processes: max }: LimitsInForce, means: Means): SandboxHolds["processes"] {
  if (means.group !== undefined) return { by: "cgroup", max };
  if (means.holdsPids) return { by: "pid-namespace", max: means.maxPid };
  return means.hasRlimit ? { by: "rlimit", max } : { by: "nothing" };
}

/** Before 6.14 there is one number for the whole host, and root could write it from inside any namespace. */
export function isPidMaxOfNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split(".").map(Number);
  return major > 6 || (major === 6 && minor >= 14);
}
