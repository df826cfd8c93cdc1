/**
 * The private folders of one sandbox: its temporary files on disk, because builds put gigabytes into /tmp, and in memory
 * what is a handful of names: the stand-ins that are mounted over masked places, the new root, the plan. On disk these would
 * go into the file system's journal, and whoever syncs a file next would wait for them. Both lie in a folder that only this
 * user can write (private-folder.ts). Removed when the sandbox closes; what a killed Heddle of this user left behind is
 * removed by the next one.
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
/** Two numbers, a boot id and the name of a namespace. */
const MAX_OWNER_BYTES = 256;
/** Making one takes milliseconds. */
const HALF_MADE_MS = 60_000;
/** Gigabytes of small files take a while. */
const REMOVE_MS = 60_000;
/** What others left behind is nobody's hurry; a shorter run looks for it when it ends. */
const CLEAN_AFTER_MS = 2000;

/** What is harmless in /dev and programs expect there. */
export const DEVICES = ["null", "zero", "full", "random", "urandom", "tty"] as const;

const TEMPORARY = ["tmp", "var-tmp"] as const;
/** Of statfs(2): a file system in memory. */
const TMPFS = 0x01021994;
const MEMORY = "/dev/shm";

export interface Scratch extends AsyncDisposable {
  readonly path: string;
  /** All its folders: the one above, and where its temporary files are. */
  readonly folders: readonly string[];
  /** Where the new root is put together. */
  readonly root: string;
  readonly tmp: string;
  readonly varTmp: string;
  /** On disk, for what a room keeps there; not there until somebody makes it. */
  readonly room: string;
  readonly emptyFile: string;
  /** What stands in for /dev; the device nodes are mounted on the files in it. */
  readonly devices: string;
  /** Where empty folders are made that stand in for covered places. */
  readonly covers: string;
  /** Named pipes are made here while the sandbox is put together. */
  readonly pipes: string;
  /** The streams of standbys, while they are being opened, and how one enters. */
  readonly standbys: string;
  /** A socket nobody listens on: connecting is refused, and git still sees a socket where there was one. */
  deadSocket(): Promise<string>;
}

/**
 * Makes the folders with all that belongs into them: a few dozen calls on the way to the first request of every run. Waiting
 * for each, or a program for each, would cost ten times more. With a parent, all of it is there.
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

/** undefined where there is no memory for it: containers have little of it, and it may be full. */
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

function scratchOf(light: Folder, disk: Folder): Scratch {
  const own = [...new Set([light, disk])];
  const inside = (name: string): string => join(light.path, name);
  const [tmp, varTmp] = TEMPORARY.map((name) => join(disk.path, name)) as [string, string];
  const room = join(disk.path, "room");
  let cleaning: Promise<void> | undefined;
  const clean = (): Promise<void> => (cleaning ??= removeAbandoned(own));
  const later = setTimeout(() => void clean(), CLEAN_AFTER_MS).unref();
  let socket: Promise<string> | undefined;
  return {
    path: light.path,
    folders: own.map((folder) => folder.path),
    root: inside("root"),
    tmp,
    varTmp,
    room,
    emptyFile: inside("empty"),
    devices: inside("dev"),
    covers: inside("covers"),
    pipes: inside("pipes"),
    standbys: inside("standbys"),
    deadSocket: () => (socket ??= makeDeadSocket(light.path)),
    [Symbol.asyncDispose]: async () => {
      clearTimeout(later);
      await clean();
      // What the sandbox itself put there is a handful of names; what commands left may be gigabytes.
      const isSmall = [tmp, varTmp, room].every(isEmpty);
      // A holder that is just being killed may put a last name there.
      for (const { path } of own) if (!isSmall || !removed(path)) await removeTree(path);
    },
  };
}

interface Folder {
  /** Where its like are looked for when it closes; absent: among names of other users, where nothing is looked at. */
  readonly parent?: string;
  readonly path: string;
}

/** Below a folder that others can write too. */
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
  // Whole from its first moment: another Heddle that is cleaning up must not read half a name and take it for a dead one's.
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
  // Loaded only here: most hosts have no socket that has to be covered.
  const { createServer } = await import("node:net");
  const server = createServer();
  const [live, path] = [join(folder, "s"), join(folder, "socket")];
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(live, resolve);
  });
  // Closing removes the name it was bound to, not the file under its new name.
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
 * Commands leave folders that may not be written, as package caches do, and names too long to be spelled out: the programs of
 * the host remove both, walking by descriptors. What is left even then is no reason for a turn to fail: the next Heddle tries.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 50 });
  } catch {
    await runHostTool("chmod", ["-R", "u+rwx", path], REMOVE_MS).catch(() => undefined);
    await runHostTool("rm", ["-rf", path], REMOVE_MS).catch(() => undefined);
  }
}

/** Never fails: what cannot be looked at or removed is left to the next one. */
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

/** Made or removed only in part: a Heddle was killed right then, or two cleaned up at once. */
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
  // A pid of another pid namespace says nothing here.
  if (namespace !== hereNamespace || !Number.isInteger(pid)) return false;
  return processIdentity(pid) !== owner;
}

let known: string | undefined;

/** Of this process. */
function identity(): string {
  return (known ??= processIdentity(process.pid));
}

/** Pid, start time, boot and pid namespace: together they name one process for good. */
function processIdentity(pid: number): string {
  const startTime = readProcStat(pid)?.startTicks ?? "none";
  const boot = attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")) ?? "unknown";
  const namespace = attempt(() => readlinkSync("/proc/self/ns/pid")) ?? "unknown";
  return `${pid} ${startTime} ${boot.trim()} ${namespace}`;
}
