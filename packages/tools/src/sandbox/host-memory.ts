/**
 * Remembers across processes that this host has given a sandbox, so that a run does not wait for the host's answer
 * again. Valid until the next boot, for this user in this container. If the host refuses after all, that one run ends
 * with `sandbox.failed` before any command, and the memory is removed.
 */
import { mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { attempt } from "../attempt.ts";

/** The file must be out of reach of agents. */
export function openHostMemory(file: string) {
  const mark = (what: string): string => `${here()} ${what}\n`;
  return {
    has: (what: string) => attempt(() => readFileSync(file, "utf8")) === mark(what),
    keep(what: string) {
      // Failing to keep it only costs time. A torn file matches nothing.
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
