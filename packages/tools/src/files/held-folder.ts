/**
 * Files that Heddle itself writes because an option, a spec or the configuration names them. Their folder is held open from
 * before any agent runs, so that no change of the path can redirect a write; a file is made in the folder without following
 * links and renamed over the old one. Links of the path are walked by hand and remembered: one that lies where an agent may
 * write must not have led out of there (`refuseLinksOf`). Synchronous, because the last files are written at process exit.
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { isInside, refuseLinks, walkFolder, type FolderWalkOptions, type WalkedFolder } from "./folder-walk.ts";
import { identityOf } from "./path-walk.ts";

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;

export interface Draft extends Disposable {
  append(content: string | Uint8Array): void;
  /** Makes it durable and gives it its name. */
  commit(): void;
}

export interface WriteOptions {
  /** Of a new file; 0600 when absent. */
  readonly mode?: number;
  /** A replaced file passes on its mode. */
  readonly keepsMode?: boolean;
  /** It can be made again, so it is not synced. */
  readonly isVolatile?: boolean;
}

/** The real path now, before an agent could put a link into it; missing parts are kept. */
export function realPathOf(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    const above = dirname(folder);
    return above === folder ? folder : join(realPathOf(above), basename(folder));
  }
}

export function holdFolder(folder: string, options: FolderWalkOptions = {}): HeldFolder {
  const walked = walkFolder(folder, options);
  return new HeldFolder(walked, durable(walked.fd));
}

/** A descriptor that can be synced; a folder that may be entered and written but not listed has none. */
function durable(fd: number): number | undefined {
  try {
    return openSync(at(fd, "."), O_RDONLY | O_DIRECTORY);
  } catch {
    return undefined;
  }
}

function at(fd: number, name: string): string {
  return `/proc/self/fd/${fd}/${name}`;
}

export class HeldFolder implements Disposable {
  /** As it was when it was opened, without links. */
  readonly path: string;
  /** It was missing and has been made. */
  readonly isNew: boolean;
  /** Real paths of the links that led to it. */
  readonly links: readonly string[];
  readonly #walked: WalkedFolder;
  readonly #synced: number | undefined;
  #isOpen = true;

  constructor(walked: WalkedFolder, synced: number | undefined) {
    this.path = walked.realPath;
    this.isNew = walked.isNew;
    this.links = walked.links.map((link) => link.path);
    this.#walked = walked;
    this.#synced = synced;
  }

  /** The path of a file of this very folder, whatever its own path leads to now. */
  at(name: string): string {
    if (process.platform !== "linux") return join(this.path, name);
    return at(this.#walked.fd, name);
  }

  /** The old content or the new one, at any moment; refuses when the folder is no longer at its path. */
  write(name: string, content: string | Uint8Array, options?: WriteOptions): void {
    using draft = this.draft(name, options);
    draft.append(content);
    draft.commit();
  }

  /** The same for content in pieces; without a commit nothing of it stays. */
  draft(name: string, { mode = 0o600, keepsMode = false, isVolatile = false }: WriteOptions = {}): Draft {
    this.requireUnmoved();
    const old = keepsMode ? lstatSync(this.at(name), { throwIfNoEntry: false }) : undefined;
    const fresh = this.at(`.heddle-${randomBytes(8).toString("hex")}.new`);
    // An existing name, above all a link, is refused.
    const fd = openSync(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    let isOpen = true;
    const close = (): void => {
      if (isOpen) closeSync(fd);
      isOpen = false;
    };
    return {
      append(content) {
        failpoint("artifact.before-write");
        const bytes = typeof content === "string" ? Buffer.from(content) : content;
        for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done);
      },
      commit: () => {
        if (old?.isFile() === true && (fstatSync(fd).mode & 0o777) !== (old.mode & 0o777))
          fchmodSync(fd, old.mode & 0o777);
        if (!isVolatile) fsyncSync(fd);
        close();
        failpoint("artifact.before-rename");
        renameSync(fresh, this.at(name));
        if (!isVolatile) this.sync();
      },
      [Symbol.dispose]() {
        close();
        rmSync(fresh, { force: true });
      },
    };
  }

  /** A folder in it, made when it is missing; never a link. */
  below(name: string): HeldFolder {
    const isNew = mkdirSync(this.at(name), { recursive: true, mode: 0o700 }) !== undefined;
    const fd = openSync(this.at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const own = identityOf(fstatSync(fd, { bigint: true }));
    const { trail, links } = this.#walked;
    const walked = { fd, realPath: join(this.path, name), identity: own, trail: [...trail, own], links, isNew };
    return new HeldFolder(walked, undefined);
  }

  /** Throws `path.outside` when a link inside one of these folders led out of all of them. */
  refuseLinksOf(roots: readonly string[]): void {
    refuseLinks(this.#walked, roots);
  }

  isIn(roots: readonly string[]): boolean {
    return isInside(this.#walked.trail, roots);
  }

  /** Throws `store.failed` when the folder is no longer at its path. */
  requireUnmoved(): void {
    const found = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    if (found !== undefined && identityOf(found) === this.#walked.identity) return;
    throw new HeddleError(
      "store.failed",
      `the folder ${this.path} was ${found === undefined ? "removed or moved" : "replaced"} while it was in use; nothing was written there`,
    );
  }

  /** Makes the names in it durable. */
  sync(): void {
    if (this.#synced !== undefined) fsyncSync(this.#synced);
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.#walked.fd);
    if (this.#synced !== undefined) closeSync(this.#synced);
  }
}
