/**
 * Folders and trees, by the same race-free walk as single files: every entry is reached through the open descriptor of its
 * folder, links are kept or copied as links and never followed, and what is masked stops the whole before it begins.
 */
import { randomUUID } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, type BigIntStats } from "node:fs";
import { copyFile, mkdir, opendir, readlink, rename, rmdir, symlink, unlink } from "node:fs/promises";
import { HeddleError } from "@heddle/protocol";
import { checkPath, checkReadable, invalid, outside, type PathRules } from "./path-rules.ts";
import { O_PATH } from "./own-folder.ts";
import { failure, identitiesOf, identityOf, walk, withCode } from "./path-walk.ts";

/** More than a large checkout with its dependencies has; a loop of mounts has no end. */
const MAX_ENTRIES = 200_000;
const MAX_DEPTH = 200;

export interface EntryFacts {
  /** Of what the path leads to. */
  readonly kind: "file" | "directory" | "other";
  readonly isSymlink: boolean;
  readonly createdAtMs: number;
  readonly modifiedAtMs: number;
  readonly sizeBytes: number;
  readonly realPath: string;
}

/** Undefined when there is nothing, or a link that leads nowhere. */
export function factsInside(path: string, rules: PathRules): EntryFacts | undefined {
  using own = walk(path, rules, { access: "read", keepLastLink: true });
  if (own.entry === undefined) return undefined;
  const isSymlink = own.entry.stat.isSymbolicLink();
  if (!isSymlink) return { ...factsOf(own.entry.stat), isSymlink, realPath: own.realPath };
  using target = walk(path, rules, { access: "read" });
  if (target.entry === undefined) return undefined;
  return { ...factsOf(target.entry.stat), isSymlink, realPath: target.realPath };
}

function factsOf(stat: BigIntStats): Omit<EntryFacts, "isSymlink" | "realPath"> {
  return {
    kind: stat.isFile() ? "file" : stat.isDirectory() ? "directory" : "other",
    createdAtMs: Number(stat.birthtimeMs),
    modifiedAtMs: Number(stat.mtimeMs),
    sizeBytes: Number(stat.size),
  };
}

/** The address of an open folder, good until it is disposed: whatever its name means by then, it is the one checked. */
export function openFolderInside(path: string, rules: PathRules): Disposable & { readonly address: string } {
  if (path === "/") checkReadable(path, rules);
  if (path === "/") return { address: "/", [Symbol.dispose]: () => undefined };
  const walked = walk(path, rules, { access: "read" });
  if (walked.entry?.stat.isDirectory() === true) {
    return { address: `/proc/self/fd/${walked.entry.fd}`, [Symbol.dispose]: () => walked[Symbol.dispose]() };
  }
  const code = walked.entry === undefined ? "ENOENT" : "ENOTDIR";
  walked[Symbol.dispose]();
  throw failure(path, withCode(code));
}

export async function makeFolderInside(
  path: string,
  rules: PathRules,
  options: { readonly createParents: boolean },
): Promise<void> {
  using walked = walk(path, rules, { access: "write", createParents: options.createParents });
  if (walked.entry !== undefined) {
    if (options.createParents && walked.entry.stat.isDirectory()) return;
    throw failure(path, withCode("EEXIST"));
  }
  await mkdir(walked.at, 0o777).catch((error: unknown) => {
    throw failure(path, error);
  });
}

/** Removes a file, a link itself, or a folder; with `isRecursive` with all that is in it. */
export async function removeInside(
  path: string,
  rules: PathRules,
  options: { readonly isRecursive: boolean },
): Promise<void> {
  using walked = walk(path, rules, { access: "write", keepLastLink: true });
  if (walked.entry === undefined) throw failure(path, withCode("ENOENT"));
  try {
    if (!walked.entry.stat.isDirectory()) return await unlink(walked.at);
    if (options.isRecursive) {
      const masked = identitiesOf(rules.masked);
      await visit(path, walked.entry.fd, { masked, leave: undefined });
      await visit(path, walked.entry.fd, {
        masked,
        async leave({ at, stat }) {
          await (stat.isDirectory() ? rmdir(at) : unlink(at));
        },
      });
    }
    await rmdir(walked.at);
  } catch (error) {
    throw error instanceof HeddleError ? error : failure(path, error);
  }
}

/** Copies one regular file with its mode; an existing file is replaced. */
export async function copyFileInside(from: string, to: string, rules: PathRules): Promise<void> {
  using source = walk(from, rules, { access: "read" });
  if (source.entry === undefined) throw failure(from, withCode("ENOENT"));
  if (!source.entry.stat.isFile()) throw invalid(from, "it is not a regular file");
  using target = walk(to, rules, { access: "write" });
  if (target.entry !== undefined && !target.entry.stat.isFile()) throw invalid(to, "it is not a regular file");
  const temporary = target.beside(`.heddle-${randomUUID()}.tmp`);
  try {
    await copyFile(`/proc/self/fd/${source.entry.fd}`, temporary, constants.COPYFILE_EXCL);
    await rename(temporary, target.at);
  } catch (error) {
    throw failure(to, error);
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

/**
 * Copies what is in one folder into another, which is made. Every target is checked like a file that is written, all of
 * them before the first one is: a tree with a protected path in it is refused whole. Devices and sockets are passed over.
 */
export async function copyTreeInside(from: string, to: string, rules: PathRules): Promise<void> {
  using source = walk(from, rules, { access: "read" });
  if (source.entry === undefined) throw failure(from, withCode("ENOENT"));
  if (!source.entry.stat.isDirectory()) throw failure(from, withCode("ENOTDIR"));
  const found: { readonly below: string; readonly kind: "folder" | "file" | "link" }[] = [];
  await visit(from, source.entry.fd, {
    masked: identitiesOf(rules.masked),
    async leave({ below, stat }) {
      if (stat.isDirectory()) found.push({ below, kind: "folder" });
      else if (stat.isSymbolicLink()) found.push({ below, kind: "link" });
      else if (stat.isFile()) found.push({ below, kind: "file" });
    },
  });
  // Folders are found after what is in them; they are needed before it.
  found.sort((a, b) => (a.below < b.below ? -1 : 1));
  await makeFolderInside(to, rules, { createParents: true });
  const targets = found.map((entry) => ({
    ...entry,
    target: `${to}/${entry.below}`,
    origin: `${from}/${entry.below}`,
  }));
  for (const { target, kind } of targets) if (kind !== "folder") refuseEarly(target, rules);
  for (const { target, origin, kind } of targets) {
    if (kind === "folder") await makeFolderInside(target, rules, { createParents: true });
    else if (kind === "file") await copyFileInside(origin, target, rules);
    else await copyLink(origin, target, rules);
  }
}

/** The folders of the target may not exist yet; they are checked again when they are made. */
function refuseEarly(target: string, rules: PathRules): void {
  try {
    walk(target, rules, { access: "write", keepLastLink: true })[Symbol.dispose]();
  } catch (error) {
    if (!(error instanceof HeddleError) || error.details["isMissing"] !== true) throw error;
    checkPath(target, "write", rules);
  }
}

async function copyLink(from: string, to: string, rules: PathRules): Promise<void> {
  using source = walk(from, rules, { access: "read", keepLastLink: true });
  using target = walk(to, rules, { access: "write", keepLastLink: true });
  try {
    if (target.entry?.stat.isDirectory() === true) throw withCode("EISDIR");
    const temporary = target.beside(`.heddle-${randomUUID()}.tmp`);
    await symlink(await readlink(source.at), temporary);
    await rename(temporary, target.at);
  } catch (error) {
    throw failure(to, error);
  }
}

interface Visited {
  /** Address through the open folder. */
  readonly at: string;
  /** Path below the folder the visit began at. */
  readonly below: string;
  readonly stat: BigIntStats;
}

interface Visit {
  readonly masked: ReadonlySet<string>;
  /** After everything below it. */
  readonly leave: ((entry: Visited) => Promise<void>) | undefined;
}

async function visit(path: string, folder: number, options: Visit): Promise<void> {
  let seen = 0;
  const go = async (fd: number, prefix: string, depth: number): Promise<void> => {
    if (depth > MAX_DEPTH) throw invalid(path, "it is too deep");
    const names: string[] = [];
    for await (const { name } of await opendir(`/proc/self/fd/${fd}/.`)) {
      seen += 1;
      if (seen > MAX_ENTRIES) throw invalid(path, `it has more than ${MAX_ENTRIES} entries`);
      names.push(name);
    }
    for (const name of names) {
      const at = `/proc/self/fd/${fd}/${name}`;
      const opened = openSync(at, O_PATH | constants.O_NOFOLLOW);
      try {
        const stat = fstatSync(opened, { bigint: true });
        if (options.masked.has(identityOf(stat))) throw outside(path);
        const below = `${prefix}${name}`;
        if (stat.isDirectory()) await go(opened, `${below}/`, depth + 1);
        await options.leave?.({ at, below, stat });
      } finally {
        closeSync(opened);
      }
    }
  };
  try {
    await go(folder, "", 0);
  } catch (error) {
    throw error instanceof HeddleError ? error : failure(path, error);
  }
}
