/**
 * Who holds a turn, and whether that process still lives. A pid alone is not an identity: pids are reused, machines reboot
 * and containers have pid namespaces of their own. No clock is involved, so a jump of the wall clock ends nobody's turn.
 */
import { readFileSync, readlinkSync } from "node:fs";
import type { Holder } from "@heddle/protocol";

export type HolderState = "alive" | "dead" | "unknown";

let self: Holder | undefined;

export function thisHolder(): Holder {
  self ??= {
    pid: process.pid,
    startTicks: startTicksOf(process.pid) ?? "",
    bootId: bootId(),
    pidNamespace: pidNamespace(),
  };
  return self;
}

/** `unknown` when the pid means nothing here: another pid namespace, or a system without /proc. */
export function stateOf(holder: Holder): HolderState {
  const here = thisHolder();
  if (here.bootId === "" || holder.bootId === "") return "unknown";
  if (holder.bootId !== here.bootId) return "dead";
  if (holder.pidNamespace !== here.pidNamespace) return "unknown";
  const ticks = startTicksOf(holder.pid);
  return ticks !== undefined && ticks === holder.startTicks ? "alive" : "dead";
}

/** Field 22 of /proc/PID/stat; the name before it may hold spaces and brackets, so count from the last bracket. */
function startTicksOf(pid: number): string | undefined {
  const stat = readOrEmpty(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended; its parent merely has not looked yet.
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  return fields[19];
}

function bootId(): string {
  return readOrEmpty("/proc/sys/kernel/random/boot_id").trim();
}

function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
