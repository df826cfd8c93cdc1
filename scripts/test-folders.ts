/**
 * The folders of a run of the tests: fresh, in nobody's repository, named by their real path and short enough for sockets,
 * wherever TMPDIR leads. A hostile run gets a folder with a space in its name and a stray .git above its temporary folder.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A path of a socket holds 107 bytes, and tests need most of them below the temporary folder. */
const MAX_BASE_BYTES = 30;
/** Where else there is room, when TMPDIR is too long or in a repository. */
const OTHER_BASES = ["/tmp", "/var/tmp", "/dev/shm"];
/** More than ten times what tests have there at a time. */
const IN_MEMORY_BYTES = 2 * 1024 ** 3;
/** Arguments: the size, the folder, the command. Nobody else sees the mount, and it ends with the last process of the run. */
const MOUNT = `mount -n -t tmpfs -o "mode=1777,size=$1" heddle-test "$2" && shift 2 && exec "$@"`;

export interface Folders extends Disposable {
  readonly home: string;
  readonly temporary: string;
  readonly compiled: string;
}

export function makeFolders({ isHostile }: { readonly isHostile: boolean }, base = tmpdir()): Folders {
  const outer = mkdtempSync(join(usable(base), isHostile ? "heddle t-" : "heddle-test-"));
  // Tests that run as root and step down to another user need the same rights as in the usual temporary folder.
  chmodSync(outer, 0o711);
  if (isHostile) mkdirSync(join(outer, ".git"));
  const folders = {
    home: join(outer, "home"),
    temporary: join(outer, "tmp"),
    compiled: join(outer, "compiled"),
  };
  mkdirSync(folders.home);
  mkdirSync(folders.compiled, { mode: 0o700 });
  mkdirSync(folders.temporary);
  chmodSync(folders.temporary, 0o1777);
  return { ...folders, [Symbol.dispose]: () => remove(outer) };
}

/**
 * The words before a command that give it the temporary folder in memory, because on disk a quarter of what a run costs is
 * to make, sync and remove files; none where this user may not mount or memory is short.
 */
export function inMemory({ temporary }: Pick<Folders, "temporary">): readonly string[] {
  if (process.availableMemory() < 2 * IN_MEMORY_BYTES) return [];
  const words = ["unshare", "--mount", "--", "sh", "-c", MOUNT, "sh", String(IN_MEMORY_BYTES), temporary];
  const [program = "", ...rest] = words;
  return spawnSync(program, [...rest, "true"], { stdio: "ignore" }).status === 0 ? words : [];
}

function usable(base: string): string {
  const bases = [base, ...OTHER_BASES.filter((other) => existsSync(other))].map((one) => realpathSync(one));
  return bases.find((one) => Buffer.byteLength(one) <= MAX_BASE_BYTES && !isInRepository(one)) ?? realpathSync(base);
}

function isInRepository(folder: string): boolean {
  if (existsSync(join(folder, ".git"))) return true;
  return dirname(folder) !== folder && isInRepository(dirname(folder));
}

/** A test may leave folders that nobody may enter; that is worth a line and no more. */
function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    console.error(`could not remove ${folder}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
