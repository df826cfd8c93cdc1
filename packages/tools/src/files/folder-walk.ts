/**
 * From a path to an open folder, one component at a time, each opened in the one before it and none followed by the kernel.
 * Unlike `path-walk.ts`, which serves agents and knows before it starts what they may reach, this one serves the user's own
 * paths: links are walked and remembered, and judged once it is known where agents may write.
 */
import { closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { components } from "./path-rules.ts";
import { O_PATH } from "./own-folder.ts";
import { codeOf } from "../attempt.ts";
import { identitiesOf, identityOf, withCode } from "./path-walk.ts";

/** As many as the kernel follows. */
const MAX_LINKS = 40;

export interface WalkedFolder {
  readonly fd: number;
  readonly realPath: string;
  readonly identity: string;
  /** The folder and all above it. */
  readonly trail: readonly string[];
  readonly links: readonly FollowedLink[];
  /** The last folder was missing and has been made. */
  readonly isNew: boolean;
}

interface FollowedLink {
  readonly path: string;
  /** Identities of the folder it lies in and of all above that. */
  readonly inside: readonly string[];
}

export interface FolderWalkOptions {
  /** Missing folders are made, for the owner alone. */
  readonly makes?: boolean;
  /** No part of the path may be a link. */
  readonly refusesLinks?: boolean;
}

export function walkFolder(path: string, options: FolderWalkOptions): WalkedFolder {
  return process.platform === "linux" ? new Walk(path, options).run() : walkByName(path, options);
}

/** Throws `path.outside` when a link below one of the roots led out of all of them. */
export function refuseLinks({ links, trail, realPath }: WalkedFolder, roots: readonly string[]): void {
  const planted = isInside(trail, roots) ? undefined : links.find(({ inside }) => isInside(inside, roots));
  if (planted === undefined) return;
  throw new HeddleError(
    "path.outside",
    `${planted.path} is a link in a folder that agents may write, and it leads out of it, to ${realPath}; ` +
      "if that is meant, name the folder it leads to instead",
    { details: { path: planted.path } },
  );
}

/** Whether one of these folders is a root. */
export function isInside(trail: readonly string[], roots: readonly string[]): boolean {
  const known = identitiesOf(roots);
  return trail.some((folder) => known.has(folder));
}

interface Level {
  readonly name: string;
  readonly fd: number;
  readonly identity: string;
}

class Walk {
  readonly #path: string;
  readonly #options: FolderWalkOptions;
  readonly #links: FollowedLink[] = [];
  #levels: Level[] = [];
  #isNew = false;
  #pending: string[];

  constructor(path: string, options: FolderWalkOptions) {
    this.#path = path;
    this.#options = options;
    this.#pending = components(path);
  }

  run(): WalkedFolder {
    try {
      this.#restart();
      for (let name = this.#pending.shift(); name !== undefined; name = this.#pending.shift()) this.#step(name);
      const last = this.#levels.pop();
      if (last === undefined) throw new HeddleError("internal", `no folder was found at ${this.#path}`);
      const trail = [...this.#levels.map((level) => level.identity), last.identity];
      const realPath = this.#realPath(last.name);
      return { fd: last.fd, realPath, identity: last.identity, trail, links: this.#links, isNew: this.#isNew };
    } finally {
      for (const { fd } of this.#levels) closeSync(fd);
    }
  }

  #step(name: string): void {
    if (name === ".") return;
    if (name === "..") {
      if (this.#levels.length > 1) this.#close(this.#levels.pop());
      return;
    }
    const fd = this.#open(name);
    const stat = fstatSync(fd, { bigint: true });
    if (stat.isDirectory()) {
      this.#levels.push({ name, fd, identity: identityOf(stat) });
      return;
    }
    closeSync(fd);
    if (!stat.isSymbolicLink()) throw withCode("ENOTDIR", `${this.#realPath(name)} is not a folder`);
    this.#follow(name);
  }

  #open(name: string): number {
    this.#isNew = false;
    try {
      return openSync(this.#at(name), O_PATH | constants.O_NOFOLLOW);
    } catch (error) {
      if (codeOf(error) !== "ENOENT" || this.#options.makes !== true) throw error;
    }
    try {
      mkdirSync(this.#at(name), 0o700);
      this.#isNew = true;
    } catch (error) {
      // Another process may have made it in between.
      if (codeOf(error) !== "EEXIST") throw error;
    }
    return openSync(this.#at(name), O_PATH | constants.O_NOFOLLOW);
  }

  #follow(name: string): void {
    const path = this.#realPath(name);
    if (this.#options.refusesLinks === true) throw isLink(path);
    if (this.#links.length === MAX_LINKS) throw withCode("ELOOP", `${this.#path} has too many symbolic links`);
    const target = readlinkSync(this.#at(name));
    this.#links.push({ path, inside: this.#levels.map((level) => level.identity) });
    if (target.startsWith("/")) this.#restart();
    this.#pending.unshift(...components(target));
  }

  #restart(): void {
    for (const level of this.#levels) this.#close(level);
    const fd = openSync("/", O_PATH | constants.O_DIRECTORY);
    this.#levels = [{ name: "", fd, identity: identityOf(fstatSync(fd, { bigint: true })) }];
  }

  #close(level: Level | undefined): void {
    if (level !== undefined) closeSync(level.fd);
  }

  #at(name: string): string {
    return `/proc/self/fd/${this.#levels.at(-1)?.fd}/${name}`;
  }

  #realPath(name: string): string {
    return `/${[...this.#levels.map((level) => level.name), name].filter((part) => part !== "").join("/")}`;
  }
}

/** Without /proc/self/fd a folder is reached only by its name: then no part of the path may be a link. */
function walkByName(path: string, { makes = false }: FolderWalkOptions): WalkedFolder {
  const isNew = makes && mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined;
  const above: string[] = [];
  for (let part = path; part !== dirname(part); part = dirname(part)) above.push(part);
  const link = above.find((part) => lstatSync(part).isSymbolicLink());
  if (link !== undefined) throw isLink(link);
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  const trail = above.toReversed().map((part) => identityOf(lstatSync(part, { bigint: true })));
  return { fd, realPath: path, identity: identityOf(fstatSync(fd, { bigint: true })), trail, links: [], isNew };
}

function isLink(path: string): HeddleError {
  return new HeddleError("path.outside", `${path} is a link; put a real folder there, or name the one it leads to`, {
    details: { path },
  });
}
