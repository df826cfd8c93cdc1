/**
 * Reports which entries of a layer were read. The upper layer is mounted so that every read sets the access time, which
 * starts at zero. Setting it back changes the change time, which no program can set; so an entry whose stat differs was
 * read, followed, run or touched. The system call filter of a room refuses reads that leave no trace.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, utimesSync, type BigIntStats } from "node:fs";
import { O_PATH } from "../files/own-folder.ts";
import { toSystem, type RawPath } from "../sandbox/raw-path.ts";
import { inTurns } from "./in-turns.ts";

type Mark = Pick<BigIntStats, "dev" | "ino" | "mode" | "atimeNs" | "ctimeNs">;

export class ReadMarks {
  readonly #root: RawPath;
  readonly #marks: Map<RawPath, Mark>;

  private constructor(root: RawPath, marks: Map<RawPath, Mark>) {
    this.#root = root;
    this.#marks = marks;
  }

  /** `root`: the merged tree right after the layer was applied, with no process in it. */
  static async make(root: RawPath, paths: readonly RawPath[]): Promise<ReadMarks> {
    const marks = new Map<RawPath, Mark>();
    await inTurns(paths, (path) => {
      const mark = look(`${root}/${path}`);
      if (mark !== undefined) marks.set(path, mark);
    });
    return new ReadMarks(root, marks);
  }

  /** Since it was made, or since the last call. No process may be in the tree. */
  async take(): Promise<Set<RawPath>> {
    const read = new Set<RawPath>();
    await inTurns([...this.#marks], ([path, mark]) => {
      const at = `${this.#root}/${path}`;
      const now = look(at);
      if (now !== undefined && isSame(mark, now)) return;
      read.add(path);
      const again = now === undefined ? undefined : markAgain(at, mark);
      if (again !== undefined) this.#marks.set(path, again);
    });
    return read;
  }
}

function look(at: RawPath): Mark | undefined {
  try {
    return lstatSync(toSystem(at), { bigint: true });
  } catch {
    // A folder above it may have become a file or a broken link.
    return undefined;
  }
}

function isSame(mark: Mark, now: Mark): boolean {
  return (
    mark.dev === now.dev &&
    mark.mode === now.mode &&
    mark.atimeNs === now.atimeNs &&
    mark.ctimeNs === now.ctimeNs &&
    // The kernel may renumber a merged folder.
    (mark.ino === now.ino || isFolder(now))
  );
}

const KIND = 0o170000n;

function isFolder({ mode }: Mark): boolean {
  return (mode & KIND) === BigInt(constants.S_IFDIR);
}

/**
 * A folder above it may be a link by now. So the entry is held open, and touched only when it is on this tree's device.
 */
function markAgain(at: RawPath, { dev }: Mark): Mark | undefined {
  let fd: number;
  try {
    fd = openSync(toSystem(at), O_PATH | constants.O_NOFOLLOW);
  } catch {
    return undefined;
  }
  try {
    const stat = fstatSync(fd, { bigint: true });
    if (stat.dev !== dev) return undefined;
    // The descriptor may be that of a link: utimes(2) follows no further.
    utimesSync(`/proc/self/fd/${fd}`, 0, Number(stat.mtimeNs) / 1e9);
    return fstatSync(fd, { bigint: true });
  } finally {
    closeSync(fd);
  }
}
