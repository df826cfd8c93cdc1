/** Which process a turn waits for, and its description. */
import type { Culprit } from "@heddle/protocol";
import { inspectProcess, type ProcessInfo } from "@heddle/tools";

const MAX_CULPRITS = 5;

/**
 * The processes that hold up one command, most likely first: those that wait for input, then the youngest, because a shell
 * that has started something later does not wait for what came before. Background processes only where nothing else is
 * left.
 */
export function findCulprits(pids: readonly number[]): readonly ProcessInfo[] {
  const living = pids.flatMap((pid) => inspectProcess(pid) ?? []).filter(({ state }) => state !== "Z" && state !== "X");
  const parents = new Set(living.map(({ parent }) => parent));
  const suspects = living
    .map((info) => (isFed(info, living) ? { info: { ...info, input: undefined }, rank: 2 } : { info, rank: 1 }))
    .map(({ info, rank }) => ({ info, rank: info.input === undefined ? rank : 0 }))
    // A process with children waits for them, unless it reads or sleeps itself.
    .filter(({ info }) => info.input !== undefined || isAsleep(info) || !parents.has(info.pid));
  const ahead = suspects.filter(({ info, rank }) => rank === 0 || !isBackground(info, living));
  return (ahead.length === 0 ? suspects : ahead)
    .toSorted((a, b) => a.rank - b.rank || startedAfter(b.info, a.info))
    .map(({ info }) => info)
    .slice(0, MAX_CULPRITS);
}

/**
 * It sleeps, which is no way to wait for another process, so its children run beside it. Without a wait channel from the
 * kernel nothing counts as asleep.
 */
function isAsleep({ waitChannel }: ProcessInfo): boolean {
  return waitChannel?.includes("nanosleep") === true;
}

/** Another process of the command can write its input: then that one is waited for. */
function isFed({ pid, input }: ProcessInfo, all: readonly ProcessInfo[]): boolean {
  return input !== undefined && all.some((other) => other.pid !== pid && other.feeds.includes(input.source));
}

/** It, or an ancestor, was started in the background of a shell. */
function isBackground(info: ProcessInfo, all: readonly ProcessInfo[]): boolean {
  const parent = all.find(({ pid }) => pid === info.parent);
  // Above the command there is only what carries it.
  if (parent === undefined) return false;
  if (parent.isInit) return isOrphan(info, all);
  if (isAsleep(parent)) return true;
  const isApart = info.ignoresInterrupt && !parent.ignoresInterrupt;
  const isCutOff = info.hasNoInput && !parent.hasNoInput;
  return isApart || isCutOff || isLeft(info, parent, all) || isBackground(parent, all);
}

/**
 * A program with a command line (`sh -c …`) runs it step by step: once it has started something later, it no longer waits
 * for this process, unless both are in one pipeline.
 */
function isLeft(info: ProcessInfo, parent: ProcessInfo, all: readonly ProcessInfo[]): boolean {
  if (!parent.hasCommandLine) return false;
  const younger = all.filter((one) => one.parent === parent.pid && startedAfter(one, info) > 0);
  const shared = new Set(parent.pipes);
  const own = info.pipes.filter((pipe) => !shared.has(pipe));
  return younger.length > 0 && !younger.some(({ pipes }) => pipes.some((pipe) => own.includes(pipe)));
}

/** The first child of an init is the command itself; later ones have lost their parent. */
function isOrphan(info: ProcessInfo, all: readonly ProcessInfo[]): boolean {
  return all.some((one) => one.parent === info.parent && startedAfter(info, one) > 0);
}

/** Above 0: the first is the younger. Within one tick the pids tell. */
function startedAfter(one: ProcessInfo, other: ProcessInfo): number {
  return Number(one.startTicks) - Number(other.startTicks) || one.pid - other.pid;
}

/** `used`: CPU time at an earlier look, by pid. */
export function toCulprit(info: ProcessInfo, used: ReadonlyMap<number, number>): Culprit {
  const { pid, command, state, waitChannel, cpuMs, openSockets, input, runningMs } = info;
  return {
    pid,
    command,
    state,
    cpuMs,
    recentCpuMs: Math.max(0, cpuMs - (used.get(pid) ?? 0)),
    openSockets,
    readsStdin: input !== undefined,
    runningMs: Math.round(runningMs),
    ...(waitChannel === undefined ? {} : { waitChannel }),
  };
}

export interface Silence {
  readonly quietMs: number;
  /** With the recent CPU use of each. */
  readonly culprits: readonly (Pick<ProcessInfo, "input"> & { readonly culprit: Culprit })[];
  /** Its input can be closed from outside. */
  readonly hasInput: boolean;
  /** What the turn waits for when it is not a command. */
  readonly otherwise: string;
}

export function describeSilence({ quietMs, culprits, hasInput, otherwise }: Silence): string {
  const [first, ...others] = culprits;
  const seconds = `${Math.round(quietMs / 1000)} s`;
  if (first === undefined) return `there was no progress for ${seconds}; ${otherwise}`;
  const { culprit, input } = first;
  const more = others.length === 0 ? "" : ` (+${others.length} more)`;
  const helps =
    input === undefined
      ? ""
      : `; the action ${hasInput ? "eof ends its input, kill-child ends it" : "kill-child ends it"}`;
  return `there was no progress for ${seconds}: ${culprit.command} (pid ${culprit.pid}) ${stateText(culprit, input)}${more}${helps}`;
}

const STATES: Readonly<Record<string, string>> = {
  R: "runs",
  S: "sleeps",
  D: "waits for a device",
  T: "is stopped",
  t: "is stopped by a debugger",
};

function stateText(culprit: Culprit, input: ProcessInfo["input"]): string {
  const { state, waitChannel, openSockets, cpuMs, recentCpuMs } = culprit;
  const what =
    input === undefined
      ? (STATES[state] ?? `is in state ${state}`)
      : `waits for input on ${input.from === "stdin" ? "stdin" : "its terminal"}`;
  const facts = [
    ...(input !== undefined || waitChannel === undefined ? [] : [`in ${waitChannel}`]),
    `CPU ${(cpuMs / 1000).toFixed(2)} s, ${(recentCpuMs / 1000).toFixed(2)} s of it lately`,
    ...(openSockets === 0 ? [] : [`${openSockets} sockets open`]),
  ];
  return `${what}; ${facts.join(", ")}`;
}
