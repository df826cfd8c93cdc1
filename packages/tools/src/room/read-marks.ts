/**
 * Says which entries of a layer were read. The upper layer of a room is mounted so that every read sets the access time; each
 * entry's is set to zero, and what the kernel says of it then is remembered. Whoever sets it back changes the change time,
 * which nobody can set; so an entry that is not exactly as it was has been read, followed, run or touched. Ways to read that
 * leave no trace are refused by the system call filter of a room.
 */
import { closeSync, constants, fstatSync, openSync, utimesSync, type BigIntStats } from "node:fs";
import { O_PATH } from "../own-folder.ts";
import { toSystem, type RawPath } from "../sandbox/raw-path.ts";

interface Mark {
  readonly dev: bigint;
  readonly atimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly mode: bigint;
}

export class ReadMarks {
  readonly #root: RawPath;
  readonly #marks = new Map<RawPath, Mark>();

  /** `root` leads to the merged tree; nobody is in it yet. */
  constructor(root: RawPath, paths: readonly RawPath[]) {
    this.#root = root;
    for (const path of paths) {
      const mark = this.#look(path, resetAccess);
      if (mark !== undefined) this.#marks.set(path, mark);
    }
  }

  /** Since it was made, or since the last call. Nobody may be in the tree any more. */
  take(): Set<RawPath> {
    const read = new Set<RawPath>();
    for (const [path, mark] of this.#marks) {
      const now = this.#look(path, (fd, stat) => {
        if (isSame(mark, stat)) return;
        read.add(path);
        // A folder on the way may be a link by now: only what is in this tree is touched.
        if (stat.dev === mark.dev) resetAccess(fd, stat);
      });
      if (now === undefined) read.add(path);
      if (now?.dev === mark.dev) this.#marks.set(path, now);
    }
    return read;
  }

  /** Held open, so that what is looked at and what is touched are one. undefined: it is not there. */
  #look(path: RawPath, work: (fd: number, stat: BigIntStats) => void): Mark | undefined {
    let fd: number;
    try {
      fd = openSync(toSystem(`${this.#root}/${path}`), O_PATH | constants.O_NOFOLLOW);
    } catch {
      return undefined;
    }
    try {
      work(fd, fstatSync(fd, { bigint: true }));
      const { dev, atimeNs, ctimeNs, mode } = fstatSync(fd, { bigint: true });
      return { dev, atimeNs, ctimeNs, mode };
    } finally {
      closeSync(fd);
    }
  }
}

function isSame(mark: Mark, stat: BigIntStats): boolean {
  return (
    mark.dev === stat.dev &&
    mark.atimeNs === stat.atimeNs &&
    mark.ctimeNs === stat.ctimeNs &&
    mark.mode === stat.mode
  );
}

function resetAccess(fd: number, { mtimeNs }: BigIntStats): void {
  // By the descriptor, which may be one of a link: utimes(2) stops there and follows no further.
  utimesSync(`/proc/self/fd/${fd}`, 0, Number(mtimeNs) / 1e9);
}
