/**
 * The process that holds a turn or a task, and whether it lives. A pid alone is not an identity: pids are reused,
 * machines reboot, and containers have pid namespaces. On one host no clock is involved: a process that has ended is
 * dead at once, a stopped one lives. A process on another host is dead when it has not renewed its leases.
 */
import { createHash, randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import type { Journal } from "@heddle/journal";
import { HeddleError, type Holder } from "@heddle/protocol";
import { isDeadProcess, readProcStat } from "@heddle/tools";

export type HolderState = "alive" | "dead" | "unknown";

let self: Holder | undefined;

export function thisHolder(): Holder {
  self ??= {
    host: hostId(),
    pid: process.pid,
    // Without /proc nothing else distinguishes two processes of one pid.
    startTicks: startTicksOf(process.pid) ?? randomUUID(),
    bootId: bootId(),
    pidNamespace: pidNamespace(),
  };
  return self;
}

/** `unknown`: another host, another pid namespace, or a system without /proc. */
export function stateOf(holder: Holder): HolderState {
  const here = thisHolder();
  if (holder.host !== undefined && holder.host !== here.host) return "unknown";
  if (here.bootId === "" || holder.bootId === "") return "unknown";
  if (holder.bootId !== here.bootId) return "dead";
  if (holder.pidNamespace !== here.pidNamespace) return "unknown";
  const ticks = startTicksOf(holder.pid);
  return ticks !== undefined && ticks === holder.startTicks ? "alive" : "dead";
}

/**
 * The same for the holder of a lease; `unknown` becomes `dead` when the lease has expired. `wait`: see `Leases.isOver`.
 */
export async function leaseStateOf(
  { leases }: Pick<Journal, "leases">,
  holder: Holder,
  options?: { readonly wait: boolean },
): Promise<HolderState> {
  const state = stateOf(holder);
  if (state === "dead" || (await leases.isFenced(holder))) return "dead";
  return state === "unknown" && (await leases.isOver(holder, options)) ? "dead" : state;
}

/**
 * Must differ between hosts, because a process of another boot of the same host is dead. Copied machines and containers
 * of one image share a machine id, but not a host name. After a renaming, leases only have to expire. `HEDDLE_HOST_ID`
 * sets it where neither is certain.
 */
function hostId(): string {
  const given = process.env["HEDDLE_HOST_ID"] ?? "";
  if (given === "") {
    const machine = readOrEmpty("/etc/machine-id").trim();
    return createHash("sha256").update(`heddle host\n${machine}\n${hostname()}`).digest("hex").slice(0, 16);
  }
  if (/^[\w-]{1,64}$/.test(given)) return given;
  throw new HeddleError("config.invalid", "HEDDLE_HOST_ID must be 1 to 64 letters, digits, - or _");
}

function startTicksOf(pid: number): string | undefined {
  const stat = readProcStat(pid);
  return stat === undefined || isDeadProcess(stat) ? undefined : stat.startTicks;
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
