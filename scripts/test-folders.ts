/**
 * The folders of a run of the tests: fresh, in nobody's repository, named by their real path and short enough for sockets,
 * wherever TMPDIR leads. A hostile run gets a folder with a space in its name and a stray .git above its temporary folder.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A path of a socket holds 107 bytes, and tests need most of them below the temporary folder. */
const MAX_BASE_BYTES = 30;
/** Where else there is room, when TMPDIR is too long or in a repository. */
const OTHER_BASES = ["/tmp", "/var/tmp", "/dev/shm"];

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
