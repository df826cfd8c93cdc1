/**
 * Says which entries of a layer were read. The upper layer of a room is mounted so that every read sets the access time; it
 * begins as zero, and what the kernel says of each entry then is remembered. Whoever sets it back changes the change time,
 * which nobody can set; so an entry that is not exactly as it was has been read, followed, run or touched. Ways to read that
 * leave no trace are refused by the system call filter of a room.
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

  /** `root` leads to the merged tree, where a layer has just been put; nobody is in it yet. */
  static async make(root: RawPath, paths: readonly RawPath[]): Promise<ReadMarks> {
    const marks = new Map<RawPath, Mark>();
    await inTurns(paths, (path) => {
      const mark = look(`${root}/${path}`);
      if (mark !== undefined) marks.set(path, mark);
    });
    return new ReadMarks(root, marks);
  }

  /** Since it was made, or since the last call. Nobody may be in the tree any more. */
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
    // A folder on the way may have become a file, or a link that leads nowhere.
    return undefined;
  }
}

function isSame(mark: Mark, now: Mark): boolean {
  return (
    mark.dev === now.dev &&
    mark.mode === now.mode &&
    mark.atimeNs === now.atimeNs &&
    mark.ctimeNs === now.ctimeNs &&
    // The kernel may number a merged folder anew.
    (mark.ino === now.ino || isFolder(now))
  );
}

const KIND = 0o170000n;

function isFolder({ mode }: Mark): boolean {
  return (mode & KIND) === BigInt(constants.S_IFDIR);
}

/**
 * A folder on the way may be a link by now, which leads anywhere. So the entry is held, and touched only when it is of this
 * tree; undefined when it is not.
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
    // The descriptor may be one of a link: utimes(2) stops there and follows no further.
    utimesSync(`/proc/self/fd/${fd}`, 0, Number(stat.mtimeNs) / 1e9);
    return fstatSync(fd, { bigint: true });
  } finally {
    closeSync(fd);
  }
}
