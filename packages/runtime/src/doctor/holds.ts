/** What the kernel made of `[sandbox_limits]`, in text for people. */
import type { SandboxHolds } from "@heddle/protocol";

/** For each limit the number and who holds it. */
export function holdsText({ processes, memory, cpu, systemCalls }: SandboxHolds): string {
  const mb = memory.maxBytes === undefined ? undefined : `${Math.floor(memory.maxBytes / 2 ** 20)} MB of memory`;
  return [
    held(processes.by, processes.max === undefined ? undefined : `${processes.max} processes`, "processes"),
    held(memory.by, mb, "memory"),
    ...(cpu === undefined ? [] : [held(cpu.by, `${cpu.maxSec} seconds of computing time`, "computing time")]),
    ...(systemCalls === undefined
      ? []
      : [systemCalls === "filtered" ? "system calls filtered" : "no system call filter"]),
  ].join(", ");
}

const SCOPES = {
  cgroup: "in all (cgroup)",
  "pid-namespace": "in all (pid namespace)",
  rlimit: "each (rlimit)",
  nothing: "not limited",
} as const;

function held(by: keyof typeof SCOPES, max: string | undefined, what: string): string {
  return `${max ?? what} ${SCOPES[by]}`;
}
