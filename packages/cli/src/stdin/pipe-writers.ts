/**
 * Who could still write into the pipe on standard input, as far as /proc tells. The members of a shell pipeline are no
 * ancestors of this process and write or end; a program that started this one and kept the pipe it made is an ancestor.
 */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";

export type PipeWriters =
  /** Only this process and its children. */
  | { readonly kind: "nobody" }
  /** Only programs that this process descends from. */
  | { readonly kind: "ancestors"; readonly pid: number; readonly name: string }
  /** Another process: it writes, or ends and closes the pipe. */
  | { readonly kind: "others" }
  /** A process that cannot be seen: of another user or container, or there is no /proc. */
  | { readonly kind: "unknown" };

/** Between two looks at the event loop; a host may have thousands of processes. */
const BATCH = 50;

export async function pipeWriters(fd: number): Promise<PipeWriters> {
  const name = readlink(`/proc/self/fd/${fd}`);
  // As /proc numbers it: in a container that shows the host's, the own number means another process.
  const self = Number(readlink("/proc/self"));
  if (name === undefined || !Number.isInteger(self)) return { kind: "unknown" };
  const ancestors = new Set(ancestorsOf(self));
  let isOwn = false;
  let ancestor: number | undefined;
  for (const [index, pid] of processes().entries()) {
    if (index % BATCH === BATCH - 1) await nextTurn();
    if (!writes(pid, name)) continue;
    if (pid === self || isStartedHere(pid, self)) isOwn = true;
    else if (ancestors.has(pid)) ancestor = pid;
    else return { kind: "others" };
  }
  if (ancestor !== undefined) return { kind: "ancestors", pid: ancestor, name: nameOf(ancestor) };
  return { kind: isOwn ? "nobody" : "unknown" };
}

/**
 * What a shell started before it became this program (`exec heddle < <(producer)`) is a child of this process too, and older
 * than the program.
 */
function isStartedHere(pid: number, self: number): boolean {
  if (!ancestorsOf(pid).includes(self)) return false;
  // In this order: a delay between the two lets the program look younger, and a producer is never taken for its child.
  const ageOfProgram = process.uptime();
  const [sinceBoot] = read("/proc/uptime").split(" ");
  // The uptime is cut to hundredths, so the program may have started one later than the difference says.
  return startedAt(pid) > Number(sinceBoot) + 0.01 - ageOfProgram;
}

/** In seconds since the boot; the kernel counts hundredths. */
function startedAt(pid: number): number {
  const [, ticks] = /^.*\) (?:\S+ ){19}(\d+) /s.exec(read(`/proc/${pid}/stat`)) ?? [];
  return Number(ticks ?? 0) / 100;
}

/** Newest first: what was started beside this process is found soon. */
function processes(): readonly number[] {
  const pids = entries("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid));
  return pids.toSorted((a, b) => b - a);
}

function writes(pid: number, pipe: string): boolean {
  return entries(`/proc/${pid}/fd`).some((fd) => {
    const link = `/proc/${pid}/fd/${fd}`;
    return readlink(link) === pipe && isOpenForWriting(link);
  });
}

/** The link's own mode tells how the descriptor was opened. */
function isOpenForWriting(link: string): boolean {
  try {
    return (lstatSync(link).mode & 0o200) !== 0;
  } catch {
    return false;
  }
}

function ancestorsOf(pid: number): readonly number[] {
  const found: number[] = [];
  for (let at = parentOf(pid); at > 0 && !found.includes(at); at = parentOf(at)) found.push(at);
  return found;
}

function parentOf(pid: number): number {
  // The name of the program stands in parentheses and may hold anything.
  const [, parent] = /^.*\) \S (\d+) /s.exec(read(`/proc/${pid}/stat`)) ?? [];
  return Number(parent ?? 0);
}

function nameOf(pid: number): string {
  return read(`/proc/${pid}/comm`).trim();
}

function entries(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Ended meanwhile, or of another user.
    return [];
  }
}

function readlink(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
