/**
 * Judges what appeared in or as a git folder: it may run nothing, and point only to folders that are guarded
 * themselves. A pointer is judged by where it leads now, so its verdict holds only for the moment.
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

/** `depends`: harmless now, but others can change that; it is judged again. */
export type GitVerdict = "accept" | "depends" | "remove";

export function judgeGit({ path, name, kind, matter }: Special, roots: readonly RawPath[]): GitVerdict {
  const lower = name.toLowerCase();
  if (matter === "odd") return isLinkToBranch(path, lower) ? "accept" : "remove";
  if (matter === "branch") return kind === "file" && isBranch(path) ? "accept" : "remove";
  if (matter === "todo") return runsNothing(path) ? "accept" : "remove";
  if (kind === "directory") return lower === ".git" || lower === "hooks" || lower === "info" ? "accept" : "remove";
  // It could be written through its second name, past a mount.
  if (kind !== "file" || statRaw(path)?.nlink !== 1n) return "remove";
  if (lower === ".git" || lower === "commondir") {
    const target = targetOf(path);
    if (target === undefined || !isUnderGuard(target, roots)) return "remove";
    // Git requires a HEAD where `.git` points, but not where commondir does; without one nothing there is judged.
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
  readonly written: RawPath;
  readonly real: RawPath;
}

/** Where a `.git` file or a `commondir` points, parsed exactly as git does; undefined: nowhere. */
export function targetOf(path: RawPath): Target | undefined {
  const text = readSmall(path)?.replace(/[\r\n]+$/, "");
  const named = path.toLowerCase().endsWith("/.git") ? /^gitdir: ([^]+)$/.exec(text ?? "")?.[1] : text;
  return named === undefined || named === "" ? undefined : resolve(folderOf(path), named);
}

function resolve(base: RawPath, named: RawPath): Target | undefined {
  const written = named.startsWith("/") ? named : `${base}/${named}`;
  if (written.includes("\0")) return undefined;
  const real = attempt(() => realpathSync.native(toSystem(written), "latin1"));
  return real === undefined ? undefined : { written, real };
}

/** No link in the path, because a link can be changed later; and inside a root, where the walk sees it. */
function isUnderGuard({ written, real }: Target, roots: readonly RawPath[]): boolean {
  return posix.normalize(`${written}/`) === `${real}/` && roots.some((root) => isWithin(real, root));
}

/** As for a submodule: the `.git` file of its work tree names this git folder. */
function leadsBack(gitFolder: RawPath, worktree: RawPath, roots: readonly RawPath[]): boolean {
  const tree = resolve(gitFolder, worktree);
  if (tree === undefined || !isUnderGuard(tree, roots)) return false;
  const pointer = `${tree.real}/.git`;
  return statRaw(pointer)?.isFile() === true && targetOf(pointer)?.real === gitFolder;
}

/** The old form of HEAD; git itself makes no other links. */
function isLinkToBranch(path: RawPath, name: string): boolean {
  if (name !== "head") return false;
  const target = attempt(() => readlinkSync(toSystem(path), "latin1")) ?? "";
  return /^refs\/heads\/[^]+$/.test(target) && !`/${target}/`.includes("/../");
}

/** A branch or its log begins with a commit id or `ref: `, so no other program can take it for anything. */
function isBranch(path: RawPath): boolean {
  return /^(?:ref: |[0-9a-f]{40})/.test(readSmall(path) ?? "");
}

function runsNothing(path: RawPath): boolean {
  const text = readSmall(path);
  return text !== undefined && !/(?:^|\n)[ \t\r]*(?:exec|x)(?:[ \t\r\n]|$)/.test(text);
}

/** Paths below a root, existing or not, that the owner's configuration makes git read or run. */
export function namedByOwner(config: RawPath, roots: readonly RawPath[]): RawPath[] {
  const named: RawPath[] = [];
  const gitFolder = folderOf(config);
  for (const { key, path } of namedByConfig(readSmall(config) ?? "")) {
    // Hooks and programs are relative to the work tree, included configurations to this one.
    const base = key.startsWith("include") ? gitFolder : folderOf(gitFolder);
    const target = posix.normalize(path.startsWith("/") ? path : `${base}/${path}`).replace(/\/$/, "");
    const isOwn = roots.some((root) => isBelow(target, root)) && !isWithin(gitFolder, target);
    const isSure = key === "core.hookspath" || key.startsWith("include");
    if (isOwn && (isSure || statRaw(target)?.isFile() === true)) named.push(target);
  }
  return named;
}

/** As bytes, so that paths in it keep theirs. */
function readSmall(path: RawPath): string | undefined {
  return readRegularFile(path, MAX_JUDGED_BYTES)?.toString("latin1");
}

function folderOf(path: RawPath): RawPath {
  return path.slice(0, path.lastIndexOf("/"));
}
