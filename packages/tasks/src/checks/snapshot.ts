/** Files by content at one moment: those that checks and protections name. Taken at the beginning, and around every run of checks. */
import { canonical, type LeafCheck } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { boxGlobs } from "./checkboxes.ts";
import { globOf } from "./globs.ts";
import { leavesOf } from "./names.ts";
import { relativePath } from "./relative-path.ts";
import { sha256, type Workspace } from "./workspace.ts";

/** Stored with the attempt, so that it stays a few hundred kilobytes. */
const MAX_FILES = 5_000;

/** What runners and compilers leave behind is no work. */
const LEFTOVERS =
  /(^|\/)(\.pytest_cache|\.mypy_cache|\.ruff_cache|\.nyc_output|\.cache|\.vite|coverage|\.coverage)(\/|$)|\.pyc$/;

export interface Snapshot {
  readonly files: Readonly<Record<string, string>>;
  readonly isTruncated: boolean;
}

/** `more`: further files by path; they come first where there are too many, and those that are not there are "". */
export async function takeSnapshot(
  files: Workspace,
  spec: Pick<TaskSpec, "checks">,
  more: readonly string[] = [],
): Promise<Snapshot> {
  const leaves = leavesOf(spec.checks);
  const named = new Set([...more, ...leaves.flatMap(pathsOf).filter(isUsable).map(relativePath)]);
  for (const { path } of (await files.find(leaves.flatMap(globsOf).filter(isUsable))).entries) named.add(path);
  const kept = [...named].slice(0, MAX_FILES);
  const hashes: Record<string, string> = Object.fromEntries(await files.hashes(kept));
  // What comes first is kept first.
  for (const path of more.slice(0, MAX_FILES)) hashes[path] ??= "";
  return { files: hashes, isTruncated: named.size > MAX_FILES };
}

/** One hash for the whole workspace, leftovers of tools and reports of test runs aside. */
export async function hashTree(files: Workspace, spec: Pick<TaskSpec, "checks">): Promise<string> {
  const { entries } = await files.find(["**"]);
  const reports = new Set(leavesOf(spec.checks).map((check) => (check.kind === "tests" ? check.report : undefined)));
  const work = entries.map(({ path }) => path).filter((path) => !LEFTOVERS.test(path) && !reports.has(path));
  return sha256(canonical(Object.fromEntries(await files.hashes(work))));
}

/** Paths that differ between two moments. */
export function changedBetween(a: Snapshot, b: Snapshot): readonly string[] {
  const all = new Set([...Object.keys(a.files), ...Object.keys(b.files)]);
  return [...all].filter((path) => a.files[path] !== b.files[path]).toSorted();
}

/** A path or glob that cannot be one is told by its check. */
function isUsable(pattern: string): boolean {
  try {
    globOf(pattern);
    return true;
  } catch {
    return false;
  }
}

function pathsOf(check: LeafCheck): readonly string[] {
  switch (check.kind) {
    case "file-exists":
    case "file-absent":
    case "contains":
    case "matches":
    case "json":
    case "yaml":
      return [check.path];
    case "schema":
      return typeof check.schema === "string" ? [check.path, check.schema] : [check.path];
    default:
      return [];
  }
}

function globsOf(check: LeafCheck): readonly string[] {
  if (check.kind === "glob-count") return [check.glob];
  if (check.kind === "changed" || check.kind === "unchanged") return check.paths;
  return check.kind === "checkboxes" ? boxGlobs(check) : [];
}
