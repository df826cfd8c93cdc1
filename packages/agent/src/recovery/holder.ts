/**
 * Who holds a turn, and whether that process still lives. A pid alone is not an identity: pids are reused, machines reboot
 * and containers have pid namespaces of their own. No clock is involved, so a jump of the wall clock ends nobody's turn.
 */
import { readFileSync, readlinkSync } from "node:fs";
import type { Holder } from "@heddle/protocol";
import { isBuried, readProcStat } from "@heddle/tools";

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

function startTicksOf(pid: number): string | undefined {
  const stat = readProcStat(pid);
  return stat === undefined || isBuried(stat) ? undefined : stat.startTicks;
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
