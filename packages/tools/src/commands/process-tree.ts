/**
 * The processes of a command, and how they are ended. In a sandbox they are all descendants of the first process of the
 * command's pid namespace. Without one they are found by parent, group, session and a marker in the environment; only a
 * process that hides from all four is missed.
 */
import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { clockMs } from "@heddle/protocol";
import { attempt, codeOf } from "../attempt.ts";
import { argumentsOf, isDeadProcess, namespacePids, readProc, readProcStat, type ProcStat } from "./proc-stat.ts";

/** Only set where no pid namespace holds a command together. */
export const MARKER_VARIABLE = "HEDDLE_COMMAND";

const POLL_MS = 25;

/** Another one for each command; what is before it is the same for all of one owner. */
export function markerOf(owner = ""): string {
  return `${owner}/${randomUUID()}`;
}

export interface TreeOptions {
  readonly pid: number;
  readonly pidDepth: number;
  readonly marker?: string;
}

interface Entry extends ProcStat {
  readonly pid: number;
}

/** Asks every process of the command to end, except those that only lead to it: they report its end. */
export function terminateTree(options: TreeOptions): void {
  signalTree(options, "SIGTERM");
}

/** Like Ctrl-C in a terminal. */
export function interruptTree(options: TreeOptions): void {
  signalTree(options, "SIGINT");
}

function signalTree(options: TreeOptions, signal: "SIGTERM" | "SIGINT"): void {
  const depthOfCommand = namespacePids(process.pid).length + options.pidDepth;
  for (const { pid } of members(options)) {
    const pids = namespacePids(pid);
    // The first process of the namespace is a shell that waits for the command; on SIGINT it would stop waiting.
    const isCarrier = options.pidDepth > 0 && (pids.length < depthOfCommand || pids[depthOfCommand - 1] === "1");
    if (!isCarrier) sendSignal(pid, signal);
  }
}

/** Kills until none is left. False when the time is up. */
export async function killTree(options: TreeOptions, timeoutMs: number): Promise<boolean> {
  const deadline = clockMs() + timeoutMs;
  const seen = new Map<string, Entry>();
  for (;;) {
    // A process whose parent has died is no longer found by descent, so those seen before are kept.
    for (const entry of members(options)) seen.set(`${entry.pid}:${entry.startTicks}`, entry);
    const left = [...seen.values()].filter(isAlive);
    if (left.length === 0) return true;
    for (const { pid } of left) sendSignal(pid, "SIGKILL");
    if (clockMs() > deadline) return false;
    await sleep(POLL_MS);
  }
}

/** A reused pid has another start time. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
}

/**
 * Ends one process with all its descendants: SIGTERM first, SIGKILL when that does not help in time. `gone`: it had
 * ended before; `stays`: it could not be ended.
 */
export async function endProcess(
  { pid, startTicks }: ProcessIdentity,
  graceMs: number,
): Promise<"ended" | "gone" | "stays"> {
  return endAll(descendantsOf(pid, startTicks), graceMs);
}

/** What is left of an owner's commands that were started without a sandbox, by a process that is gone. */
export async function endLeftProcesses(owner: string, graceMs: number): Promise<"ended" | "gone" | "stays"> {
  return endAll(
    readProcesses().filter((entry) => !isDeadProcess(entry) && hasMarker(entry.pid, `${owner}/`)),
    graceMs,
  );
}

async function endAll(chosen: readonly Entry[], graceMs: number): Promise<"ended" | "gone" | "stays"> {
  if (chosen.length === 0) return "gone";
  for (const entry of chosen.filter(isAlive)) sendSignal(entry.pid, "SIGTERM");
  if (await haveEnded(chosen, graceMs)) return "ended";
  for (const entry of chosen.filter(isAlive)) sendSignal(entry.pid, "SIGKILL");
  return (await haveEnded(chosen, graceMs)) ? "ended" : "stays";
}

function descendantsOf(pid: number, startTicks: string): readonly Entry[] {
  const entries = readProcesses().filter((entry) => !isDeadProcess(entry));
  if (!entries.some((entry) => entry.pid === pid && entry.startTicks === startTicks)) return [];
  const chosen = withDescendants(pid, entries);
  return entries.filter((entry) => chosen.has(entry.pid));
}

function withDescendants(pid: number, entries: readonly Entry[]): ReadonlySet<number> {
  const chosen = new Set([pid]);
  // Parents may have higher numbers than their children, so repeat until nothing is added.
  for (let before = 0; before !== chosen.size;) {
    before = chosen.size;
    for (const entry of entries) if (chosen.has(entry.parent)) chosen.add(entry.pid);
  }
  return chosen;
}

function isAlive({ pid, startTicks }: ProcessIdentity): boolean {
  const stat = readProcStat(pid);
  return stat !== undefined && stat.startTicks === startTicks && !isDeadProcess(stat);
}

async function haveEnded(entries: readonly Entry[], timeoutMs: number): Promise<boolean> {
  const deadline = clockMs() + timeoutMs;
  while (entries.some(isAlive)) {
    if (clockMs() > deadline) return false;
    await sleep(POLL_MS);
  }
  return true;
}

/** Kills every process of this user that has an argument below the given path. */
export async function killByArgument(path: string, timeoutMs: number): Promise<void> {
  const deadline = clockMs() + timeoutMs;
  for (;;) {
    const left = readProcesses().filter(
      (entry) => !isDeadProcess(entry) && entry.pid !== process.pid && hasArgumentBelow(entry.pid, path),
    );
    if (left.length === 0 || clockMs() > deadline) return;
    for (const { pid } of left) sendSignal(pid, "SIGKILL");
    await sleep(POLL_MS);
  }
}

function members({ pid, pidDepth, marker }: TreeOptions): Entry[] {
  const entries = readProcesses();
  const chosen = withDescendants(pid, entries);
  return entries.filter((entry) => {
    if (entry.pid === process.pid || isDeadProcess(entry)) return false;
    if (chosen.has(entry.pid) || entry.group === pid || entry.session === pid) return true;
    return pidDepth === 0 && marker !== undefined && hasMarker(entry.pid, marker);
  });
}

function hasArgumentBelow(pid: number, path: string): boolean {
  return argumentsOf(pid).some((argument) => argument.startsWith(`${path}/`));
}

/** Or one that begins so. */
function hasMarker(pid: number, marker: string): boolean {
  return `\0${readProc(pid, "environ")}`.includes(`\0${MARKER_VARIABLE}=${marker}`);
}

/** Empty where there is no /proc: then only the process group is known. */
function readProcesses(): Entry[] {
  return (attempt(() => readdirSync("/proc")) ?? []).flatMap((name) => {
    const stat = /^\d+$/.test(name) ? readProcStat(Number(name)) : undefined;
    return stat === undefined ? [] : [{ ...stat, pid: Number(name) }];
  });
}

export function sendSignal(pid: number, signal: "SIGINT" | "SIGTERM" | "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It has ended, or belongs to another user now (a set-uid program outside a sandbox).
    const code = codeOf(error);
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}
