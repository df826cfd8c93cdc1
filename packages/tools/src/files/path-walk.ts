/**
 * Walks a path one component at a time through descriptors, because anything that looks at a path twice can be lied to
 * in between. No component is followed by the kernel: links are read and walked by hand, against the same rules. What
 * comes back is an open parent folder and, if it exists, the entry itself; both stay what they are however the names
 * change. Linux only: it needs /proc/self/fd and O_PATH.
 */
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  statSync,
  type BigIntStats,
} from "node:fs";
import { HeddleError, reasonOf } from "@heddle/protocol";
import { attempt, codeOf } from "../attempt.ts";
import { O_PATH, ownEntryStat, ownFolderStat } from "./own-folder.ts";
import {
  checkForm,
  checkProtected,
  components,
  invalid,
  isKernelPath,
  notWritable,
  outside,
  type PathRules,
} from "./path-rules.ts";

const ENTRY = O_PATH | constants.O_NOFOLLOW;
/** As many as the kernel follows. */
const MAX_LINKS = 40;
/** A name that turns from link to file and back is being played with. */
const MAX_RETRIES = 200;

export interface WalkOptions {
  readonly access: "read" | "write";
  readonly createParents?: boolean;
  /** Stay on a link that is the last component, instead of going where it points. */
  readonly keepLastLink?: boolean;
}

export interface Walked extends Disposable {
  /** Address of the entry through the open parent folder. */
  readonly at: string;
  /** Address of another name in the same open folder. */
  beside(name: string): string;
  readonly name: string;
  readonly realPath: string;
  /** The entry itself, opened without being followed; absent when there is none. */
  readonly entry: { readonly fd: number; readonly stat: BigIntStats } | undefined;
}

interface Level {
  readonly name: string;
  readonly fd: number;
  readonly identity: string;
}

export function walk(path: string, rules: PathRules, options: WalkOptions): Walked {
  if (process.platform !== "linux") {
    throw new HeddleError("sandbox.unavailable", `file tools are not yet safe on ${process.platform}; use Linux`);
  }
  checkForm(path);
  const walker = new Walker(path, rules, options);
  try {
    return walker.run();
  } catch (error) {
    walker.close();
    throw error;
  }
}

class Walker {
  readonly #path: string;
  readonly #options: WalkOptions;
  readonly #roots: ReadonlySet<string>;
  readonly #masked: ReadonlySet<string>;
  readonly #readable: Readable | undefined;
  readonly #open = new Set<number>();
  /** From the root folder down to where the walk is; `..` goes back up in it. */
  #levels: Level[] = [];
  #pending: string[];
  #links = 0;
  #retries = 0;

  constructor(path: string, rules: PathRules, options: WalkOptions) {
    this.#path = path;
    this.#options = options;
    this.#roots = new Set(rules.writeRoots.flatMap((root) => orNone(ownFolderStat(root))));
    this.#masked = identitiesOf(rules.masked);
    this.#readable = readableOf(rules);
    this.#pending = components(path);
  }

  run(): Walked {
    this.#restart();
    if (this.#pending.length === 0) throw invalid(this.#path, "it is the root folder");
    for (;;) {
      const name = this.#pending.shift();
      // The path ended in `..` or in a link to a folder: take that folder by its own name.
      if (name === undefined) return this.#finishOnFolder();
      if (name === ".") continue;
      if (name === "..") {
        if (this.#levels.length > 1) this.#leave();
        continue;
      }
      const walked = this.#step(name);
      if (walked !== undefined) return walked;
    }
  }

  #step(name: string): Walked | undefined {
    const isLast = this.#pending.length === 0;
    const opened = this.#openEntry(name);
    if (!this.#isReadable(opened) && this.#readable?.leading.has(this.#realPath(name)) === false)
      throw outside(this.#path);
    if (opened === undefined) {
      if (isLast) return this.#finish(name, undefined);
      this.#makeFolder(name);
      return undefined;
    }
    if (opened.stat.isSymbolicLink() && !(isLast && this.#options.keepLastLink === true)) {
      this.#follow(name, opened.fd);
      return undefined;
    }
    if (isLast) return this.#finish(name, opened);
    if (!opened.stat.isDirectory()) {
      throw new HeddleError("path.invalid", `${this.#realPath(name)} is not a folder`, {
        details: { path: this.#path },
      });
    }
    this.#levels.push({ name, fd: opened.fd, identity: identityOf(opened.stat) });
    this.#refuseKernelPath();
    return undefined;
  }

  #openEntry(name: string): { fd: number; stat: BigIntStats } | undefined {
    const fd = this.#tryOpen(this.#at(name));
    if (fd === undefined) return undefined;
    const stat = fstatSync(fd, { bigint: true });
    if (this.#masked.has(identityOf(stat))) throw outside(this.#path);
    return { fd, stat };
  }

  #follow(name: string, fd: number): void {
    this.#links += 1;
    if (this.#links > MAX_LINKS) throw invalid(this.#path, "too many symbolic links");
    this.#close(fd);
    const target = attempt(() => readlinkSync(this.#at(name)));
    // It is no longer a link.
    if (target === undefined) {
      this.#retries += 1;
      if (this.#retries > MAX_RETRIES) throw invalid(this.#path, "it keeps changing");
      this.#links -= 1;
      this.#pending.unshift(name);
      return;
    }
    if (target.startsWith("/")) this.#restart();
    this.#pending.unshift(...components(target));
  }

  #makeFolder(name: string): void {
    if (this.#options.createParents !== true) {
      throw new HeddleError("tool.failed", `${this.#path}: the folder ${this.#realPath(name)} does not exist`, {
        details: { path: this.#path, errno: "ENOENT", isMissing: true },
      });
    }
    this.#checkWritable(name);
    try {
      mkdirSync(this.#at(name), 0o777);
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw failure(this.#path, error);
      this.#retries += 1;
      if (this.#retries > MAX_RETRIES) throw invalid(this.#path, "it keeps changing");
    }
    this.#pending.unshift(name);
  }

  #finishOnFolder(): Walked {
    const last = this.#levels.pop();
    if (last === undefined || this.#levels.length === 0) throw invalid(this.#path, "it is the root folder");
    return this.#finish(last.name, { fd: last.fd, stat: fstatSync(last.fd, { bigint: true }) });
  }

  #finish(name: string, entry: Walked["entry"]): Walked {
    if (this.#options.access === "write") this.#checkWritable(name);
    else if (!this.#isReadable(entry)) throw outside(this.#path);
    else if (isKernelPath(components(this.#realPath(name))))
      throw invalid(this.#path, "it leads into the kernel's files");
    return {
      at: this.#at(name),
      beside: (other) => this.#at(other),
      name,
      realPath: this.#realPath(name),
      entry,
      [Symbol.dispose]: () => this.close(),
    };
  }

  /** Below a root that may be read, or one itself. */
  #isReadable(entry: Walked["entry"]): boolean {
    if (this.#readable === undefined) return true;
    const { roots } = this.#readable;
    return (
      (entry !== undefined && roots.has(identityOf(entry.stat))) ||
      this.#levels.some((level) => roots.has(level.identity))
    );
  }

  #checkWritable(name: string): void {
    const rootIndex = this.#levels.findLastIndex((level) => this.#roots.has(level.identity));
    if (rootIndex === -1) throw notWritable(this.#path);
    // The outermost root decides what is below it: a root inside a protected folder does not open that folder.
    const outermost = this.#levels.findIndex((level) => this.#roots.has(level.identity));
    const below = [...this.#levels.slice(outermost + 1).map((level) => level.name), name];
    checkProtected(this.#path, below);
  }

  #refuseKernelPath(): void {
    const parts = this.#levels.slice(1).map((level) => level.name);
    if (isKernelPath(parts)) throw invalid(this.#path, "files of the kernel and devices are not available");
  }

  #restart(): void {
    for (const { fd } of this.#levels) this.#close(fd);
    const fd = openSync("/", O_PATH | constants.O_DIRECTORY);
    this.#open.add(fd);
    this.#levels = [{ name: "", fd, identity: identityOf(fstatSync(fd, { bigint: true })) }];
  }

  #leave(): void {
    const level = this.#levels.pop();
    if (level !== undefined) this.#close(level.fd);
  }

  #tryOpen(address: string): number | undefined {
    try {
      const fd = openSync(address, ENTRY);
      this.#open.add(fd);
      return fd;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw failure(this.#path, error);
    }
  }

  #at(name: string): string {
    return `/proc/self/fd/${this.#levels.at(-1)?.fd}/${name}`;
  }

  #realPath(name: string): string {
    return `/${[...this.#levels.slice(1).map((level) => level.name), name].join("/")}`;
  }

  #close(fd: number): void {
    if (this.#open.delete(fd)) closeSync(fd);
  }

  close(): void {
    for (const fd of this.#open) closeSync(fd);
    this.#open.clear();
  }
}

interface Readable {
  readonly roots: ReadonlySet<string>;
  /** The names on the way to them: whatever lies beside does not exist. */
  readonly leading: ReadonlySet<string>;
}

function readableOf({ readRoots, writeRoots }: PathRules): Readable | undefined {
  if (readRoots === undefined) return undefined;
  const roots = [...readRoots, ...writeRoots];
  return {
    roots: new Set(roots.flatMap((root) => orNone(ownEntryStat(root)))),
    leading: new Set(roots.flatMap(prefixes)),
  };
}

function prefixes(path: string): string[] {
  const parts = components(path);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
}

/** A folder is known by device and inode: another spelling, a link or a second mount of it is still the same folder. */
export function identityOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

export function identitiesOf(paths: readonly string[]): ReadonlySet<string> {
  return new Set(paths.flatMap((path) => orNone(statSync(path, { bigint: true, throwIfNoEntry: false }))));
}

function orNone(stat: BigIntStats | undefined): string[] {
  return stat === undefined ? [] : [identityOf(stat)];
}

/** Reports a failure of the file system with the path, not with the descriptor it was reached through. */
export function failure(path: string, error: unknown): HeddleError {
  const code = codeOf(error);
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  return new HeddleError(isFull ? "store.full" : "tool.failed", `${path}: ${reasonOf(error)}`, {
    cause: error,
    details: { path, ...(code !== undefined && { errno: code }) },
  });
}

/** A failure that reads like one of the file system. */
export function withCode(code: string, message = ""): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code });
}
