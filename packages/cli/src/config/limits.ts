/** `[sandbox_limits]`, as the engine takes it, and as people read what the kernel made of it. */
import type { HeddleOptions } from "@heddle/agent";
import type { SandboxHolds } from "@heddle/protocol";
import type { ConfigFile } from "./schema.ts";

export function limitOptions({ sandbox_limits: limits = {} }: ConfigFile): Partial<HeddleOptions> {
  const { processes, memory_mb: memoryMb, idle_sandboxes: count, idle_sec: idleSec } = limits;
  return {
    sandboxLimits: { processes, memoryBytes: memoryMb === undefined ? undefined : memoryMb * 2 ** 20 },
    idleSandboxes: { count, ms: idleSec === undefined ? undefined : Math.ceil(idleSec * 1000) },
  };
}

/** For each limit the number and who holds it. */
export function holdsText({ processes, memory, systemCalls }: SandboxHolds): string {
  const mb = memory.maxBytes === undefined ? undefined : `${Math.floor(memory.maxBytes / 2 ** 20)} MB of memory`;
  return [
    held(processes.by, processes.max === undefined ? undefined : `${processes.max} processes`, "processes"),
    held(memory.by, mb, "memory"),
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
