/**
 * The sockets of the host that a command could connect to by their path. The kernel lists them; all of them are covered, however
 * many there are. A socket that is made again under the same name counts as new: its cover went with the old name.
 */
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

  /** Real paths of all that can be reached. */
  look(): string[] {
    this.#seen = new Set();
    return this.lookForNew();
  }

  /** Of those that were not there when it was looked at last. A few dozen microseconds when there are none. */
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

/** Where sockets are seen inside that have come since it was looked last; `network` says whose they can be. */
export function newInReach(sockets: HostSockets, layout: Layout, network: "none" | "all"): string[] {
  const fresh = sockets.lookForNew();
  if (fresh.length === 0) return [];
  const find = exposure(layout.steps.filter((step) => !layout.coveredSockets.has(step.path)));
  // With the host's network, commands make theirs in the same table, and need to find them again.
  const mayBeOwn = (path: string): boolean =>
    network === "all" && layout.writeRoots.some((root) => isWithin(path, root));
  return fresh.filter((path) => !mayBeOwn(path)).flatMap(find);
}

/** Folders that hold nothing but sockets: one cover is enough for all of them, and for those that will come. */
export function foldersOfSockets(sockets: readonly string[]): string[] {
  return [...new Set(sockets.map((path) => dirname(path)))].filter((folder) => {
    const entries = attempt(() => readdirSync(folder, { withFileTypes: true }));
    return folder !== "/" && entries !== undefined && entries.every((entry) => entry.isSocket());
  });
}

/**
 * Num RefCount Protocol Flags Type St Inode Path: the path is the rest of the line and begins with a slash. State 3 is the end
 * of a connection, which has the name of the socket that accepted it and cannot be connected to.
 */
const ENTRY = /^[0-9a-fA-F]+: (?:\S+\s+){4}(?!03)\S+\s+(\d+ \/.*)$/;
const ANY_ENTRY = /^[0-9a-fA-F]+: \S+ \S+ \S+ /;

function readTable(): Key[] {
  const table = attempt(() => readFileSync("/proc/net/unix", "utf8")) ?? "";
  const keys: Key[] = [];
  let isOpen = false;
  for (const line of table.split("\n").slice(1)) {
    const key = ENTRY.exec(line)?.[1];
    // The kernel writes a path as it is: a line that is no entry goes on with the one before.
    if (key === undefined && isOpen && !ANY_ENTRY.test(line)) keys.push(`${keys.pop() ?? ""}\n${line}`);
    else isOpen = key !== undefined;
    if (key !== undefined) keys.push(key);
  }
  // The last line is empty and no part of a name.
  const last = keys.at(-1);
  if (isOpen && last?.endsWith("\n") === true) keys.splice(-1, 1, last.slice(0, -1));
  return keys;
}

/** Sockets come and go while their list is read. */
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
