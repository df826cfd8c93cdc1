/**
 * The private folders of one sandbox: temporary files on disk, because builds put gigabytes into /tmp, and in memory a
 * handful of names: covers, the new root, the plan. On disk these would go into the file system's journal and delay the
 * next sync of the record. Both lie in a folder that only this user can write (private-folder.ts). Removed when the
 * sandbox closes; the next Heddle removes what a killed one left.
 */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { lstat, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { attempt } from "../attempt.ts";
import { readProcStat } from "../commands/proc-stat.ts";
import { runHostTool } from "./host-tools.ts";
import { privateFolder, readRegularFile } from "./private-folder.ts";
import { toRaw } from "./raw-path.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const PREFIX = "heddle-sandbox-";
const OWNER_FILE = "owner";
const MAX_OWNER_BYTES = 256;
/** Making one takes milliseconds. */
const HALF_MADE_MS = 60_000;
/** Gigabytes of small files take a while. */
const REMOVE_MS = 60_000;
/** Not urgent; a shorter run does it when it ends. */
const CLEAN_AFTER_MS = 2000;

/** The harmless devices that programs expect. */
export const DEVICES = ["null", "zero", "full", "random", "urandom", "tty"] as const;

const TEMPORARY = ["tmp", "var-tmp"] as const;
/** Of statfs(2): a file system in memory. */
const TMPFS = 0x01021994;
const MEMORY = "/dev/shm";

export type Scratch = ReturnType<typeof scratchOf>;

/**
 * A few dozen synchronous calls on the way to the first request of every run: asynchronous ones would take ten times as
 * long. With a parent, everything lies below it.
 */
export function openScratch(parent?: string): Scratch {
  const disk = parent === undefined ? openBelow(temporaryFolder()) : openFolder(parent);
  for (const name of TEMPORARY) {
    mkdirSync(join(disk.path, name));
    chmodSync(join(disk.path, name), 0o1777);
  }
  const light = parent === undefined ? openInMemory() : undefined;
  return scratchOf(light ?? furnish(disk), disk);
}

/** undefined where memory is missing or full, as in some containers. */
function openInMemory(): Folder | undefined {
  let folder: Folder | undefined;
  try {
    if (statfsSync(MEMORY).type !== TMPFS) return undefined;
    folder = openBelow(MEMORY);
    return furnish(folder);
  } catch {
    if (folder !== undefined) removed(folder.path);
    return undefined;
  }
}

function scratchOf(light: Folder, disk: Folder) {
  const own = [...new Set([light, disk])];
  const folders: readonly string[] = own.map(({ path }) => path);
  const inside = (name: string): string => join(light.path, name);
  const [tmp, varTmp] = TEMPORARY.map((name) => join(disk.path, name)) as [string, string];
  const room = join(disk.path, "room");
  let cleaning: Promise<void> | undefined;
  const clean = (): Promise<void> => (cleaning ??= removeAbandoned(own));
  const later = setTimeout(() => void clean(), CLEAN_AFTER_MS).unref();
  let socket: Promise<string> | undefined;
  return {
    path: light.path,
    folders,
    /** Where the new root is built. */
    root: inside("root"),
    tmp,
    varTmp,
    /** On disk, for a room; made on demand. */
    room,
    emptyFile: inside("empty"),
    /** Mounted as /dev; the device nodes are mounted on its files. */
    devices: inside("dev"),
    /** For the empty folders that cover paths. */
    covers: inside("covers"),
    /** Named pipes, made while the sandbox opens. */
    pipes: inside("pipes"),
    /** The streams of standbys until they are opened, and their script. */
    standbys: inside("standbys"),
    /** A socket without a listener: connecting is refused, and git still finds a socket. */
    deadSocket: () => (socket ??= makeDeadSocket(light.path)),
    [Symbol.asyncDispose]: async (): Promise<void> => {
      clearTimeout(later);
      await clean();
      // The sandbox's own names are few; what commands left may be gigabytes.
      const isSmall = [tmp, varTmp, room].every(isEmpty);
      // A holder that is being killed may still make a name.
      for (const { path } of own) if (!isSmall || !removed(path)) await removeTree(path);
    },
  };
}

interface Folder {
  /** Where leftovers of others are searched for; absent: a shared folder, where nothing is touched. */
  readonly parent?: string;
  readonly path: string;
}

function openBelow(shared: string): Folder {
  const own = privateFolder(shared);
  return own === undefined ? { path: makeFolder(shared) } : openFolder(own);
}

function openFolder(parent: string): Folder {
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  return { parent, path: makeFolder(parent) };
}

function makeFolder(parent: string): string {
  const path = mkdtempSync(join(parent, PREFIX));
  // Complete from its first moment: another Heddle that cleans up must not read half an owner.
  writeFileSync(join(path, `${OWNER_FILE}.new`), identity(), { mode: 0o600 });
  renameSync(join(path, `${OWNER_FILE}.new`), join(path, OWNER_FILE));
  return path;
}

function furnish(folder: Folder): Folder {
  const inside = (...names: string[]): string => join(folder.path, ...names);
  for (const name of ["root", "covers", "dev", "dev/shm", "dev/pts"]) mkdirSync(inside(name), { mode: 0o755 });
  for (const name of ["pipes", "standbys"]) mkdirSync(inside(name), { mode: 0o700 });
  writeFileSync(inside("empty"), "", { mode: 0o444 });
  for (const name of DEVICES) writeFileSync(inside("dev", name), "", { mode: 0o644 });
  symlinkSync("pts/ptmx", inside("dev", "ptmx"));
  symlinkSync("/proc/self/fd", inside("dev", "fd"));
  for (const [fd, name] of ["stdin", "stdout", "stderr"].entries()) symlinkSync(`fd/${fd}`, inside("dev", name));
  return folder;
}

async function makeDeadSocket(folder: string): Promise<string> {
  // Most hosts have no socket to cover.
  const { createServer } = await import("node:net");
  const server = createServer();
  const [live, path] = [join(folder, "s"), join(folder, "socket")];
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(live, resolve);
  });
  // Closing removes the name it was bound to, not the renamed file.
  await rename(live, path);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return path;
}

function removed(path: string): boolean {
  return attempt(() => (rmSync(path, { recursive: true, force: true }), true)) ?? false;
}

function isEmpty(folder: string): boolean {
  return (attempt(() => readdirSync(folder)) ?? []).length === 0;
}

/**
 * Commands leave read-only folders, as package caches do, and paths too long to spell: chmod and rm walk by
 * descriptors. What still remains is no failure of a turn: the next Heddle tries again.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 50 });
  } catch {
    await runHostTool("chmod", ["-R", "u+rwx", path], REMOVE_MS).catch(() => undefined);
    await runHostTool("rm", ["-rf", path], REMOVE_MS).catch(() => undefined);
  }
}

/** Never fails: the rest is left to the next one. */
async function removeAbandoned(own: readonly Folder[]): Promise<void> {
  for (const { parent, path: ownPath } of own) {
    if (parent === undefined) continue;
    for (const name of attempt(() => readdirSync(parent)) ?? []) {
      const path = join(parent, name);
      if (!name.startsWith(PREFIX) || path === ownPath) continue;
      const owner = readRegularFile(toRaw(join(path, OWNER_FILE)), MAX_OWNER_BYTES)?.toString();
      const isOver = owner === undefined ? await isHalfMade(path) : isAbandoned(owner);
      if (isOver) await removeTree(path);
    }
  }
}

/** A Heddle was killed while making or removing it, or two cleaned up at once. */
async function isHalfMade(path: string): Promise<boolean> {
  const stat = await lstat(path).catch(() => undefined);
  return stat !== undefined && stat.uid === process.getuid?.() && Date.now() - stat.mtimeMs > HALF_MADE_MS;
}

function isAbandoned(owner: string): boolean {
  const pid = Number(owner.split(" ")[0]);
  const here = identity();
  const [, , boot, namespace] = owner.split(" ");
  const [, , hereBoot, hereNamespace] = here.split(" ");
  if (boot !== hereBoot) return true;
  // A pid of another namespace means nothing here.
  if (namespace !== hereNamespace || !Number.isInteger(pid)) return false;
  return processIdentity(pid) !== owner;
}

let known: string | undefined;

function identity(): string {
  return (known ??= processIdentity(process.pid));
}

/** Together they name one process for good. */
function processIdentity(pid: number): string {
  const startTime = readProcStat(pid)?.startTicks ?? "none";
  const boot = attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")) ?? "unknown";
  const namespace = attempt(() => readlinkSync("/proc/self/ns/pid")) ?? "unknown";
  return `${pid} ${startTime} ${boot.trim()} ${namespace}`;
}
