/** `[sandbox_limits]`, as the engine takes it. */
import type { HeddleOptions } from "@heddle/agent";
import type { ConfigFile } from "../config/schema.ts";

export function limitOptions({ sandbox_limits: limits = {} }: ConfigFile): Partial<HeddleOptions> {
  const { processes, memory_mb: memoryMb, idle_sandboxes: count, idle_sec: idleSec } = limits;
  return {
    sandboxLimits: { processes, memoryBytes: memoryMb === undefined ? undefined : memoryMb * 2 ** 20 },
    idleSandboxes: { count, ms: idleSec === undefined ? undefined : Math.ceil(idleSec * 1000) },
  };
}
