/**
 * Judges what appeared in or as a git folder: it may not run anything, and it may lead nowhere but to folders that are under
 * guard themselves. A pointer is judged by where the kernel goes with it now, so a verdict on one holds only for the moment.
 */
import { constants } from "node:fs";
import { open, readlink, realpath } from "node:fs/promises";
import { posix } from "node:path";
import { judgeConfig, namedByConfig } from "./git-config.ts";
import { isBelow, isWithin } from "./mountinfo.ts";
import { toSystem, type RawPath } from "./raw-path.ts";
import { statRaw, type Special } from "./tree-index.ts";

const MAX_JUDGED_BYTES = 64 * 1024;

/** `depends`: harmless as things are, which others can change; it is judged again. */
export type GitVerdict = "accept" | "depends" | "remove";

export async function judgeGit({ path, name, kind, matter }: Special, roots: readonly RawPath[]): Promise<GitVerdict> {
  const lower = name.toLowerCase();
  if (matter === "odd") return (await isLinkToBranch(path, lower)) ? "accept" : "remove";
  if (matter === "branch") return kind === "file" && (await isBranch(path)) ? "accept" : "remove";
  if (matter === "todo") return (await runsNothing(path)) ? "accept" : "remove";
  if (kind === "directory") return lower === ".git" || lower === "hooks" || lower === "info" ? "accept" : "remove";
  // By another name it could be written when this one is under a mount.
  if (kind !== "file" || statRaw(path)?.nlink !== 1n) return "remove";
  if (lower === ".git" || lower === "commondir") {
    const target = await targetOf(path);
    if (target === undefined || !isUnderGuard(target, roots)) return "remove";
    // Git asks for a HEAD where `.git` leads, but not where commondir does; without one nobody judges what is there.
    return lower === ".git" || statRaw(`${target.real}/HEAD`)?.isFile() === true ? "depends" : "remove";
  }
  if (lower === "hooks" || lower === "info") return "remove";
  const text = await readSmall(path);
  if (text === undefined) return "remove";
  const { harmful, worktree } = judgeConfig(text);
  if (harmful !== undefined) return "remove";
  if (worktree === undefined) return "accept";
  return (await leadsBack(folderOf(path), worktree, roots)) ? "depends" : "remove";
}

export interface Target {
  /** As it is written, made absolute. */
  readonly written: RawPath;
  /** Where the kernel goes with it. */
  readonly real: RawPath;
}

/** Where a `.git` file or a `commondir` leads; undefined when it leads nowhere. Read exactly as git reads it. */
export async function targetOf(path: RawPath): Promise<Target | undefined> {
  const text = (await readSmall(path))?.replace(/[\r\n]+$/, "");
  const place = path.toLowerCase().endsWith("/.git") ? /^gitdir: ([^]+)$/.exec(text ?? "")?.[1] : text;
  return place === undefined || place === "" ? undefined : resolve(folderOf(path), place);
}

async function resolve(base: RawPath, place: RawPath): Promise<Target | undefined> {
  const written = place.startsWith("/") ? place : `${base}/${place}`;
  if (written.includes("\0")) return undefined;
  const real = await realpath(toSystem(written), "latin1").catch(() => undefined);
  return real === undefined ? undefined : { written, real };
}

/** No link on the way, because what a link leads to is changed by changing the link; and the walk gets there too. */
function isUnderGuard({ written, real }: Target, roots: readonly RawPath[]): boolean {
  return posix.normalize(`${written}/`) === `${real}/` && roots.some((root) => isWithin(real, root));
}

/** As the git folder of a submodule does: its work tree has a `.git` file that names it. */
async function leadsBack(gitFolder: RawPath, worktree: RawPath, roots: readonly RawPath[]): Promise<boolean> {
  const tree = await resolve(gitFolder, worktree);
  if (tree === undefined || !isUnderGuard(tree, roots)) return false;
  const pointer = `${tree.real}/.git`;
  return statRaw(pointer)?.isFile() === true && (await targetOf(pointer))?.real === gitFolder;
}

/** The old form of HEAD. Git writes links itself only there. */
async function isLinkToBranch(path: RawPath, name: string): Promise<boolean> {
  if (name !== "head") return false;
  const target = await readlink(toSystem(path), "latin1").catch(() => "");
  return /^refs\/heads\/[^]+$/.test(target) && !`/${target}/`.includes("/../");
}

/** A branch or its log begins with the name of a commit, which nobody else can read as anything. */
async function isBranch(path: RawPath): Promise<boolean> {
  return /^(?:ref: |[0-9a-f]{40})/.test((await readSmall(path)) ?? "");
}

async function runsNothing(path: RawPath): Promise<boolean> {
  const text = await readSmall(path);
  return text !== undefined && !/(?:^|\n)[ \t\r]*(?:exec|x)(?:[ \t\r\n]|$)/.test(text);
}

/** What the owner's configuration makes git read or run, as far as it lies below a root, existing or not. */
export async function namedByOwner(config: RawPath, roots: readonly RawPath[]): Promise<RawPath[]> {
  const named: RawPath[] = [];
  const gitFolder = folderOf(config);
  for (const { key, path } of namedByConfig((await readSmall(config)) ?? "")) {
    // Hooks and programs are looked for from the top of the work tree, further configurations from this one.
    const base = key.startsWith("include") ? gitFolder : folderOf(gitFolder);
    const place = posix.normalize(path.startsWith("/") ? path : `${base}/${path}`).replace(/\/$/, "");
    const isOwn = roots.some((root) => isBelow(place, root)) && !isWithin(gitFolder, place);
    const isSure = key === "core.hookspath" || key.startsWith("include");
    if (isOwn && (isSure || statRaw(place)?.isFile() === true)) named.push(place);
  }
  return named;
}

/** As bytes, so that a path in it stays what it is. */
async function readSmall(path: RawPath): Promise<string | undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(toSystem(path), flags).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const stat = await handle.stat();
    if (!stat.isFile() || stat.size > MAX_JUDGED_BYTES) return undefined;
    return await handle.readFile("latin1");
  } finally {
    await handle.close();
  }
}

function folderOf(path: RawPath): RawPath {
  return path.slice(0, path.lastIndexOf("/"));
}
