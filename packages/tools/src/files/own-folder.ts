/**
 * A writable folder must be the folder its path names without links. An agent that works above it could put a link
 * there between two turns. So the path is opened once, and the open folder reports its real path.
 */
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
  type BigIntStats,
} from "node:fs";
import { HeddleError, hostFaultOr, toHeddleError } from "@heddle/protocol";

/**
 * Opens a path without access to its content. Missing from Node's constants; the same on every processor Node runs
 * Linux on.
 */
export const O_PATH = 0x20_00_00;

/** `leadsTo`: where the name leads, when a link is on the way. undefined: there is no such folder. */
type Found = { readonly stat: BigIntStats } | { readonly leadsTo: string } | undefined;

function look(path: string, kind: number = constants.O_DIRECTORY): Found {
  if (process.platform !== "linux") return lookByName(path);
  let fd: number;
  try {
    fd = openSync(path, O_PATH | kind);
  } catch (error) {
    // Without a free descriptor nothing is known of the folder.
    if (hostFaultOr(error, "workspace.missing") === "host.exhausted") throw toHeddleError(error);
    return undefined;
  }
  try {
    const real = readlinkSync(`/proc/self/fd/${fd}`);
    return real === path ? { stat: fstatSync(fd, { bigint: true }) } : { leadsTo: real };
  } finally {
    closeSync(fd);
  }
}

/** Checks twice, with a gap in between; only used where there is no sandbox. */
function lookByName(path: string): Found {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stat?.isDirectory() !== true) return undefined;
  const real = realpathSync.native(path);
  return real === path ? { stat } : { leadsTo: real };
}

/** undefined when there is none, or the path contains a link. */
export function ownFolderStat(path: string): BigIntStats | undefined {
  const found = look(path);
  return found !== undefined && "stat" in found ? found.stat : undefined;
}

/** The same for a folder or a file. */
export function ownEntryStat(path: string): BigIntStats | undefined {
  const found = look(path, 0);
  return found !== undefined && "stat" in found ? found.stat : undefined;
}

/** Throws `workspace.missing`, or `workspace.moved` when a link is on the way. */
export function requireOwnFolder(path: string): void {
  const found = look(path);
  if (found === undefined) throw new HeddleError("workspace.missing", `${path} is not a folder`);
  if ("stat" in found) return;
  throw new HeddleError(
    "workspace.moved",
    `${path} is behind a link that leads to ${found.leadsTo}; if that folder is meant, name it (heddle exec -C, or cwd)`,
    { details: { path, leadsTo: found.leadsTo } },
  );
}
