/**
 * The system's folder for temporary files, as its name led there when this process first asked, and held open since. Where it
 * lies in a folder that an agent works in, the agent could put a link in its place, and whatever Heddle makes there next would
 * be made elsewhere: a name that leads to another folder by now is refused.
 */
import { constants, fstatSync, mkdirSync, openSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { HeddleError } from "@heddle/protocol";
import { O_PATH, ownFolderStat } from "../files/own-folder.ts";

interface HeldPlace {
  readonly path: string;
  /** Open for as long as the process lives, so that no other folder can get its number. */
  readonly fd: number;
}

/** By what TMPDIR says. */
const held = new Map<string, HeldPlace>();

/** Without links. Throws `sandbox.failed` when it is not the one that it was. */
export function temporaryFolder(): string {
  const name = tmpdir();
  const known = held.get(name);
  if (known === undefined) {
    const place = hold(name);
    held.set(name, place);
    return place.path;
  }
  const { dev, ino } = fstatSync(known.fd, { bigint: true });
  const now = ownFolderStat(known.path);
  if (now?.dev === dev && now.ino === ino) return known.path;
  throw new HeddleError(
    "sandbox.failed",
    `the folder for temporary files, ${known.path}, was moved or replaced since Heddle began; set TMPDIR to a folder outside of what agents write, and start again`,
  );
}

function hold(name: string): HeldPlace {
  mkdirSync(name, { recursive: true, mode: 0o700 });
  const path = realpathSync.native(name);
  const flags = process.platform === "linux" ? O_PATH | constants.O_DIRECTORY : constants.O_RDONLY;
  return { path, fd: openSync(path, flags) };
}
