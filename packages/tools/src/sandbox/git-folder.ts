/**
 * Judges what appeared in or as a git folder: it may not run anything, and it may lead nowhere but to folders that are under
 * guard themselves. A pointer is judged by where the kernel goes with it now, so a verdict on one holds only for the moment.
 */
import { readlinkSync, realpathSync } from "node:fs";
import { posix } from "node:path";
import { attempt } from "../attempt.ts";
import { judgeConfig, namedByConfig } from "./git-config.ts";
import { isBelow, isWithin } from "./mountinfo.ts";
import { readRegularFile } from "./private-folder.ts";
import { toSystem, type RawPath } from "./raw-path.ts";
import { statRaw, type Special } from "./tree-index.ts";

const MAX_JUDGED_BYTES = 64 * 1024;

/** `depends`: harmless as things are, which others can change; it is judged again. */
export type GitVerdict = "accept" | "depends" | "remove";

export function judgeGit({ path, name, kind, matter }: Special, roots: readonly RawPath[]): GitVerdict {
  const lower = name.toLowerCase();
  if (matter === "odd") return isLinkToBranch(path, lower) ? "accept" : "remove";
  if (matter === "branch") return kind === "file" && isBranch(path) ? "accept" : "remove";
  if (matter === "todo") return runsNothing(path) ? "accept" : "remove";
  if (kind === "directory") return lower === ".git" || lower === "hooks" || lower === "info" ? "accept" : "remove";
  // By another name it could be written when this one is under a mount.
  if (kind !== "file" || statRaw(path)?.nlink !== 1n) return "remove";
  if (lower === ".git" || lower === "commondir") {
    const target = targetOf(path);
    if (target === undefined || !isUnderGuard(target, roots)) return "remove";
    // Git asks for a HEAD where `.git` leads, but not where commondir does; without one nobody judges what is there.
    return lower === ".git" || statRaw(`${target.real}/HEAD`)?.isFile() === true ? "depends" : "remove";
  }
  if (lower === "hooks" || lower === "info") return "remove";
  const text = readSmall(path);
  if (text === undefined) return "remove";
  const { harmful, worktree } = judgeConfig(text);
  if (harmful !== undefined) return "remove";
  if (worktree === undefined) return "accept";
  return leadsBack(folderOf(path), worktree, roots) ? "depends" : "remove";
}

export interface Target {
  /** As it is written, made absolute. */
  readonly written: RawPath;
  /** Where the kernel goes with it. */
  readonly real: RawPath;
}

/** Where a `.git` file or a `commondir` leads; undefined when it leads nowhere. Read exactly as git reads it. */
export function targetOf(path: RawPath): Target | undefined {
  const text = readSmall(path)?.replace(/[\r\n]+$/, "");
  const place = path.toLowerCase().endsWith("/.git") ? /^gitdir: ([^]+)$/.exec(text ?? "")?.[1] : text;
  return place === undefined || place === "" ? undefined : resolve(folderOf(path), place);
}

function resolve(base: RawPath, place: RawPath): Target | undefined {
  const written = place.startsWith("/") ? place : `${base}/${place}`;
  if (written.includes("\0")) return undefined;
  const real = attempt(() => realpathSync.native(toSystem(written), "latin1"));
  return real === undefined ? undefined : { written, real };
}

/** No link on the way, because what a link leads to is changed by changing the link; and the walk gets there too. */
function isUnderGuard({ written, real }: Target, roots: readonly RawPath[]): boolean {
  return posix.normalize(`${written}/`) === `${real}/` && roots.some((root) => isWithin(real, root));
}

/** As the git folder of a submodule does: its work tree has a `.git` file that names it. */
function leadsBack(gitFolder: RawPath, worktree: RawPath, roots: readonly RawPath[]): boolean {
  const tree = resolve(gitFolder, worktree);
  if (tree === undefined || !isUnderGuard(tree, roots)) return false;
  const pointer = `${tree.real}/.git`;
  return statRaw(pointer)?.isFile() === true && targetOf(pointer)?.real === gitFolder;
}

/** The old form of HEAD. Git writes links itself only there. */
function isLinkToBranch(path: RawPath, name: string): boolean {
  if (name !== "head") return false;
  const target = attempt(() => readlinkSync(toSystem(path), "latin1")) ?? "";
  return /^refs\/heads\/[^]+$/.test(target) && !`/${target}/`.includes("/../");
}

/** A branch or its log begins with the name of a commit, which nobody else can read as anything. */
function isBranch(path: RawPath): boolean {
  return /^(?:ref: |[0-9a-f]{40})/.test(readSmall(path) ?? "");
}

function runsNothing(path: RawPath): boolean {
  const text = readSmall(path);
  return text !== undefined && !/(?:^|\n)[ \t\r]*(?:exec|x)(?:[ \t\r\n]|$)/.test(text);
}

/** What the owner's configuration makes git read or run, as far as it lies below a root, existing or not. */
export function namedByOwner(config: RawPath, roots: readonly RawPath[]): RawPath[] {
  const named: RawPath[] = [];
  const gitFolder = folderOf(config);
  for (const { key, path } of namedByConfig(readSmall(config) ?? "")) {
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
function readSmall(path: RawPath): string | undefined {
  return readRegularFile(path, MAX_JUDGED_BYTES)?.toString("latin1");
}

function folderOf(path: RawPath): RawPath {
  return path.slice(0, path.lastIndexOf("/"));
}
