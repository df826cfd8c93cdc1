/**
 * The host's sockets that a command could connect to by their path. The kernel lists them, and all of them are covered.
 * A socket that is made again under the same name counts as new: its cover was removed with the old one.
 */
import type { Network } from "@heddle/protocol";
import { lstatSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { attempt } from "../attempt.ts";
import { dirname } from "node:path";
import { exposure, type Layout } from "./layout.ts";
import { isWithin } from "./mountinfo.ts";
import { isReachable } from "./reachable.ts";

/** Number and name of an open socket, as the kernel lists them. */
type Key = string;

export class HostSockets {
  #seen: ReadonlySet<Key> = new Set();

  /** Real paths of all that are reachable. */
  look(): string[] {
    this.#seen = new Set();
    return this.lookForNew();
  }

  /** Those that appeared since the last look. A few dozen microseconds when there are none. */
  lookForNew(): string[] {
    const known = this.#seen;
    const now = new Set(readTable());
    this.#seen = now;
    const canReach = memo((folder: string) => isReachable(`${folder}/socket`));
    const paths = new Set<string>();
    for (const key of now) {
      if (known.has(key)) continue;
      const real = realSocket(key.slice(key.indexOf("/")));
      if (real !== undefined && canReach(dirname(real))) paths.add(real);
    }
    return [...paths];
  }
}

/** Where new sockets are visible inside. */
export function newInReach(sockets: HostSockets, layout: Layout, network: Network): string[] {
  const fresh = sockets.lookForNew();
  if (fresh.length === 0) return [];
  const find = exposure(layout.steps.filter((step) => !layout.coveredSockets.has(step.path)));
  // With the host's network, sockets of commands are in the same table, and commands need to reach them.
  const mayBeOwn = (path: string): boolean =>
    network === "all" && layout.writeRoots.some((root) => isWithin(path, root));
  return fresh.filter((path) => !mayBeOwn(path)).flatMap(find);
}

/** Folders that hold only sockets: one cover is enough for all of them, including later ones. */
export function foldersOfSockets(sockets: readonly string[]): string[] {
  return [...new Set(sockets.map((path) => dirname(path)))].filter((folder) => {
    const entries = attempt(() => readdirSync(folder, { withFileTypes: true }));
    return folder !== "/" && entries !== undefined && entries.every((entry) => entry.isSocket());
  });
}

/**
 * Num RefCount Protocol Flags Type St Inode Path: the path is the rest of the line. State 3 is the end of a connection,
 * which has the name of the accepting socket and cannot be connected to.
 */
const ENTRY = /^[0-9a-fA-F]+: (?:\S+\s+){4}(?!03)\S+\s+(\d+ \/.*)$/;
const ANY_ENTRY = /^[0-9a-fA-F]+: \S+ \S+ \S+ /;

function readTable(): Key[] {
  const table = attempt(() => readFileSync("/proc/net/unix", "utf8")) ?? "";
  const keys: Key[] = [];
  let isOpen = false;
  for (const line of table.split("\n").slice(1)) {
    const key = ENTRY.exec(line)?.[1];
    // The kernel does not escape paths: a line that is no entry continues the one before.
    if (key === undefined && isOpen && !ANY_ENTRY.test(line)) keys.push(`${keys.pop() ?? ""}\n${line}`);
    else isOpen = key !== undefined;
    if (key !== undefined) keys.push(key);
  }
  const last = keys.at(-1);
  if (isOpen && last?.endsWith("\n") === true) keys.splice(-1, 1, last.slice(0, -1));
  return keys;
}

/** Sockets vanish while their list is read. */
function realSocket(path: string): string | undefined {
  return attempt(() => {
    const real = realpathSync.native(path);
    return lstatSync(real).isSocket() ? real : undefined;
  });
}

function memo<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>();
  return (key) => {
    const known = made.get(key);
    if (known !== undefined) return known;
    const value = make(key);
    made.set(key, value);
    return value;
  };
}
