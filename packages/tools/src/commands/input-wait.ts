/**
 * Whether a process sleeps because it waits for input that never comes: by the system call of each of its threads, and
 * the descriptors of that call. Where the kernel does not show calls, by the kernel function it sleeps in.
 */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { attempt } from "../attempt.ts";
import { listProc, readProc } from "./proc-stat.ts";

export interface InputWait {
  readonly from: "stdin" | "terminal";
  /** Identifies the pipe or terminal. */
  readonly source: string;
}

/**
 * System call numbers by machine. `one` reads one descriptor, its first argument (read, readv, splice); the others wait for
 * several: poll and ppoll, select and pselect6, epoll_wait, epoll_pwait and epoll_pwait2.
 */
const CALLS = {
  x64: { one: [0, 19, 275], poll: [7, 271], select: [23, 270], epoll: [232, 281, 441] },
  arm64: { one: [63, 65, 76], poll: [73], select: [72], epoll: [22, 441] },
} as const;
const WAYS = ["one", "poll", "select", "epoll"] as const;
type Way = (typeof WAYS)[number];

function wayOf(call: number): Way | undefined {
  const { arch } = process;
  const calls: Readonly<Record<Way, readonly number[]>> | undefined =
    arch === "x64" || arch === "arm64" ? CALLS[arch] : undefined;
  return WAYS.find((way) => calls?.[way].includes(call));
}

/** Beyond these limits the result covers a part. */
const MAX_THREADS = 64;
const MAX_DESCRIPTORS = 1024;
/** The same bit for poll(2) and epoll(7). */
const READABLE = 1;
/** Devices such as /dev/null, which never block. */
const MEMORY_DEVICES = 1;
/** /dev/ptmx: the other end of a terminal. */
const TERMINAL_MASTER = 0x502;

export function inputWait(pid: number): InputWait | undefined {
  let isCallShown = false;
  for (const thread of listProc(pid, "task").slice(0, MAX_THREADS)) {
    const [number, ...values] = readProc(pid, `task/${thread}/syscall`).trim().split(" ");
    if (number === undefined || number === "") continue;
    isCallShown = true;
    const way = wayOf(Number(number));
    if (way === undefined) continue;
    const found = firstInput(pid, descriptorsOf(pid, way, values.map(Number)));
    if (found !== undefined) return found;
  }
  return isCallShown ? undefined : byChannel(pid);
}

export interface Descriptor {
  readonly kind: "pipe" | "terminal" | "socket" | "other";
  readonly source: string;
}

/** undefined when it has been closed, or may not be looked at. */
export function descriptorOf(pid: number, fd: number): Descriptor | undefined {
  const found = attempt(() => statSync(`/proc/${pid}/fd/${fd}`));
  if (found === undefined) return undefined;
  const source = `${found.dev}:${found.ino}`;
  if (found.isFIFO()) return { kind: "pipe", source };
  if (found.isSocket()) return { kind: "socket", source };
  const isTerminal =
    found.isCharacterDevice() && majorOf(found.rdev) !== MEMORY_DEVICES && found.rdev !== TERMINAL_MASTER;
  return { kind: isTerminal ? "terminal" : "other", source };
}

function majorOf(device: number): number {
  return Math.floor(device / 256) % 4096;
}

/** A program that also waits for connections is a server, and does not hang on its input. */
function firstInput(pid: number, fds: readonly number[]): InputWait | undefined {
  const stdin = descriptorOf(pid, 0);
  const found: InputWait[] = [];
  for (const fd of fds) {
    const descriptor = descriptorOf(pid, fd);
    if (descriptor === undefined) continue;
    const { kind, source } = descriptor;
    const isStdin = fd === 0 || source === stdin?.source;
    if (kind === "socket" && !isStdin && isListening(pid, source)) return undefined;
    if (isStdin && kind !== "other") found.push({ from: "stdin", source });
    else if (kind === "terminal") found.push({ from: "terminal", source });
  }
  return found[0];
}

/** By the tables of its network: TCP in state LISTEN (0A), or a Unix socket that accepts connections (flag 0x10000). */
function isListening(pid: number, source: string): boolean {
  const inode = source.slice(source.indexOf(":") + 1);
  const tcp = new RegExp(String.raw`^ *\d+: \S+ \S+ 0A (?:\S+ +){5}${inode} `, "m");
  const unix = new RegExp(String.raw`^\S+ \S+ \S+ 00010000 \S+ \S+ +${inode}\b`, "m");
  return ["net/tcp", "net/tcp6"].some((file) => tcp.test(readProc(pid, file))) || unix.test(readProc(pid, "net/unix"));
}

function descriptorsOf(pid: number, way: Way, values: readonly number[]): readonly number[] {
  const [first = -1, second = 0] = values;
  switch (way) {
    case "one":
      return [first];
    case "poll":
      return polled(memoryOf(pid, first, Math.min(second, MAX_DESCRIPTORS) * 8));
    case "select":
      return selected(memoryOf(pid, second, Math.ceil(Math.min(first, MAX_DESCRIPTORS) / 8)));
    case "epoll":
      return watched(pid, first);
  }
}

/** struct pollfd: descriptor, requested events, returned events. */
function polled(bytes: Buffer): readonly number[] {
  const fds: number[] = [];
  for (let at = 0; at + 8 <= bytes.length; at += 8)
    if ((bytes.readInt16LE(at + 4) & READABLE) !== 0) fds.push(bytes.readInt32LE(at));
  return fds;
}

function selected(bytes: Buffer): readonly number[] {
  return [...bytes.keys()].flatMap((index) =>
    [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => ((bytes[index] ?? 0) & (1 << bit)) !== 0).map((bit) => index * 8 + bit),
  );
}

function watched(pid: number, epollFd: number): readonly number[] {
  const lines = readProc(pid, `fdinfo/${epollFd}`).matchAll(/^tfd:\s*(\d+) events:\s*([\da-f]+)/gm);
  return [...lines]
    .filter(([, , events = "0"]) => (Number.parseInt(events, 16) & READABLE) !== 0)
    .map(([, fd]) => Number(fd))
    .slice(0, MAX_DESCRIPTORS);
}

function memoryOf(pid: number, address: number, length: number): Buffer {
  const nothing = Buffer.alloc(0);
  if (address === 0 || length <= 0) return nothing;
  let file: number | undefined;
  try {
    file = openSync(`/proc/${pid}/mem`, "r");
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(file, bytes, 0, length, address));
  } catch {
    return nothing;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Without the call, the descriptor is not known. */
function byChannel(pid: number): InputWait | undefined {
  const channel = readProc(pid, "wchan");
  if (/ep_poll|epoll_wait/.test(channel)) {
    const fds = listProc(pid, "fdinfo").flatMap((fd) => watched(pid, Number(fd)));
    return firstInput(pid, fds);
  }
  return /pipe_read|pipe_wait|n_tty_read|wait_woken/.test(channel) ? firstInput(pid, [0]) : undefined;
}
