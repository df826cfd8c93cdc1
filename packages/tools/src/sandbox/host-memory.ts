/**
 * Remembers across processes that this host has given a sandbox, so that a run need not wait for the host to say so again.
 * Good until the next boot, for this user in this container: what is allowed there changes only by its owner's hand, and
 * the one run that counted on it in vain ends with `sandbox.failed` before any command, and forgets.
 */
import { mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { attempt } from "../attempt.ts";

export interface HostMemory {
  /** This host has given what is asked for. */
  has(what: string): boolean;
  keep(what: string): void;
  forget(): void;
}

/** In a file that no agent can write. */
export function openHostMemory(file: string): HostMemory {
  const mark = (what: string): string => `${here()} ${what}\n`;
  return {
    has: (what) => attempt(() => readFileSync(file, "utf8")) === mark(what),
    keep(what) {
      // One that cannot be kept is no failure, only slower. A torn one matches nothing.
      attempt(() => {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        writeFileSync(file, mark(what), { mode: 0o600 });
      });
    },
    forget: () => attempt(() => rmSync(file, { force: true })),
  };
}

function here(): string {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  const namespaces = ["user", "mnt"].map((name) => readlinkSync(`/proc/self/ns/${name}`));
  return [boot, process.getuid?.() ?? "", ...namespaces].join(" ");
}
