/**
 * The system's folder for temporary files as it was when first used, held open since. If it lies in an agent's
 * workspace, the agent could replace it by a link, and Heddle's files would be made elsewhere: a path that leads to
 * another folder now is refused.
 */
import { constants, fstatSync, mkdirSync, openSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { HeddleError } from "@heddle/protocol";
import { O_PATH, ownFolderStat } from "../files/own-folder.ts";

interface HeldTemporary {
  readonly path: string;
  /** Open for the life of the process, so that no other folder gets its number. */
  readonly fd: number;
}

/** By the value of TMPDIR. */
const held = new Map<string, HeldTemporary>();

/** Without links. Throws `sandbox.failed` when it was replaced. */
export function temporaryFolder(): string {
  const name = tmpdir();
  const known = held.get(name);
  if (known === undefined) {
    const temporary = hold(name);
    held.set(name, temporary);
    return temporary.path;
  }
  const { dev, ino } = fstatSync(known.fd, { bigint: true });
  const now = ownFolderStat(known.path);
  if (now?.dev === dev && now.ino === ino) return known.path;
  throw new HeddleError(
    "sandbox.failed",
    `the folder for temporary files, ${known.path}, was moved or replaced since Heddle began; set TMPDIR to a folder outside of what agents write, and start again`,
  );
}

function hold(name: string): HeldTemporary {
  mkdirSync(name, { recursive: true, mode: 0o700 });
  const path = realpathSync.native(name);
  const flags = process.platform === "linux" ? O_PATH | constants.O_DIRECTORY : constants.O_RDONLY;
  return { path, fd: openSync(path, flags) };
}
