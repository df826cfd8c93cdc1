/**
 * The private folder of one sandbox on disk: its temporary files and the stand-ins that are mounted over masked places.
 * On disk rather than in memory, because builds put gigabytes into /tmp. Removed when the sandbox closes; what a killed
 * Heddle left behind is removed by the next one that opens a sandbox beside it.
 */
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PREFIX = "heddle-sandbox-";
const OWNER_FILE = "owner";
/** Making one takes milliseconds. */
const HALF_MADE_MS = 60_000;

export interface Scratch extends AsyncDisposable {
  readonly path: string;
  /** Where the new root is put together. */
  readonly root: string;
  readonly tmp: string;
  readonly varTmp: string;
  readonly emptyFile: string;
  readonly deadSocket: string;
}

export async function openScratch(parent: string = tmpdir()): Promise<Scratch> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await removeAbandoned(parent);
  const path = await mkdtemp(join(parent, PREFIX));
  // Whole from its first moment: another Heddle that is cleaning up must not read half a name and take it for a dead one's.
  await writeFile(join(path, `${OWNER_FILE}.new`), await processIdentity(process.pid), { mode: 0o600 });
  await rename(join(path, `${OWNER_FILE}.new`), join(path, OWNER_FILE));
  const scratch = {
    path,
    root: join(path, "root"),
    tmp: join(path, "tmp"),
    varTmp: join(path, "var-tmp"),
    emptyFile: join(path, "empty"),
    deadSocket: join(path, "socket"),
  };
  await mkdir(scratch.root, { mode: 0o755 });
  for (const folder of [scratch.tmp, scratch.varTmp]) {
    await mkdir(folder);
    await chmod(folder, 0o1777);
  }
  await writeFile(scratch.emptyFile, "", { mode: 0o444 });
  await makeDeadSocket(scratch.path, scratch.deadSocket);
  return { ...scratch, [Symbol.asyncDispose]: () => removeTree(path) };
}

/** A socket nobody listens on: connecting is refused, and git still sees a socket where there was one. */
async function makeDeadSocket(folder: string, path: string): Promise<void> {
  const server = createServer();
  const live = join(folder, "s");
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(live, resolve);
  });
  // Closing removes the name it was bound to, not the file under its new name.
  await rename(live, path);
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

async function removeTree(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 50 });
}

async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const path = join(parent, name);
    const owner = await readFile(join(path, OWNER_FILE), "utf8").catch(() => undefined);
    const isOver = owner === undefined ? await isHalfMade(path) : await isAbandoned(owner);
    if (isOver) await removeTree(path).catch(() => undefined);
  }
}

/** Made or removed only in part: a Heddle was killed right then, or two cleaned up at once. */
async function isHalfMade(path: string): Promise<boolean> {
  const stat = await lstat(path).catch(() => undefined);
  return stat !== undefined && stat.uid === process.getuid?.() && Date.now() - stat.mtimeMs > HALF_MADE_MS;
}

async function isAbandoned(owner: string): Promise<boolean> {
  const pid = Number(owner.split(" ")[0]);
  const here = await processIdentity(process.pid);
  const [, , boot, namespace] = owner.split(" ");
  const [, , hereBoot, hereNamespace] = here.split(" ");
  if (boot !== hereBoot) return true;
  // A pid of another pid namespace says nothing here.
  if (namespace !== hereNamespace || !Number.isInteger(pid)) return false;
  return (await processIdentity(pid)) !== owner;
}

/** Pid, start time, boot and pid namespace: together they name one process for good. */
async function processIdentity(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const startTime = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "none";
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "unknown");
  const namespace = await readlink("/proc/self/ns/pid").catch(() => "unknown");
  return `${pid} ${startTime} ${boot.trim()} ${namespace}`;
}
