/**
 * Finds the repository of a judged tree: in the tree, as kept or frozen, or outside the workspace, read in place. The way
 * to it counts as it was at the beginning: a file or link that the agent puts in the place of `.git` is refused.
 */
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { toRaw, toText } from "@heddle/tools/raw-path";
import { isSameEntry, type FrozenWork, type KeptTree, type RawPath, type TreeEntry } from "../tree/manifest.ts";
import {
  entryIn,
  gitFilesAt,
  gitFilesIn,
  storedPath,
  readPlain,
  type GitFiles,
  type TreeWithChanges,
} from "./git-files.ts";
import type { GitNames } from "./refs.ts";

/** The tree as it was when the task began, with all changes since. */
export interface JudgedTree {
  readonly base: KeptTree;
  readonly frozen?: FrozenWork;
  readonly workspace: string;
  readonly signal: AbortSignal;
}

export interface Repository {
  /** When the task began; undefined: there was none. */
  readonly before: GitNames | undefined;
  readonly now: GitNames;
  /** Its path in the workspace; undefined: it is outside, where the agent cannot write. */
  readonly inside: RawPath | undefined;
  /** Absolute: where refs and objects are. */
  readonly path: string;
  /** The path of the workspace in the repository, with a slash at its end; "" at the top. */
  readonly prefix: string;
  /** The top folder on disk, for what lies above the workspace. */
  readonly top: string;
  /** Any other git folder, as it was at the beginning. */
  readonly at: (path: string) => GitFiles;
}

export function withChanges({ base, frozen }: Pick<JudgedTree, "base" | "frozen">): TreeWithChanges {
  const changes = new Map((frozen?.changes ?? []).map((change) => [change.path, change]));
  return { base, changes, ...(frozen === undefined ? {} : { folder: frozen.folder }) };
}

export async function findRepository(judged: JudgedTree): Promise<Repository | undefined> {
  const { base, workspace } = judged;
  const began: TreeWithChanges = { base, changes: new Map() };
  const now = withChanges(judged);
  const [entry, before] = [dotGitOf(now), dotGitOf(began)];
  const at = (path: string): GitFiles => filesAt(path, workspace, began);
  // A repository that was made in the workspace since does not replace the one above it.
  const above = before === undefined ? await findAbove(workspace, at) : undefined;
  if (above !== undefined || entry === undefined) return above;
  if (entry.kind === "folder") {
    if (before !== undefined && before.kind !== "folder") throw replaced();
    return inWorkspace(DOT_GIT, { began: before === undefined ? undefined : began, now, workspace, at });
  }
  if (!isSameEntry(entry, before)) throw replaced();
  const target = leadsTo(entry.target, () => readPlain(storedPath(began, DOT_GIT)));
  const path = target === undefined ? undefined : resolve(workspace, target);
  if (path === undefined) return undefined;
  const inside = insideOf(path, workspace);
  return inside === undefined
    ? await outside(path, { prefix: "", top: workspace, at })
    : inWorkspace(inside, { began, now, workspace, at });
}

const DOT_GIT = ".git";

/** As for git, a folder without HEAD is no repository. */
function dotGitOf(tree: TreeWithChanges): TreeEntry | undefined {
  const entry = entryIn(tree, DOT_GIT);
  return entry?.kind === "folder" && entryIn(tree, `${DOT_GIT}/HEAD`) === undefined ? undefined : entry;
}

function inWorkspace(
  inside: RawPath,
  trees: {
    readonly began: TreeWithChanges | undefined;
    readonly now: TreeWithChanges;
    readonly workspace: string;
    readonly at: Repository["at"];
  },
): Repository {
  const { began, now, workspace, at } = trees;
  const names = (tree: TreeWithChanges): GitNames => {
    const files = gitFilesIn(tree, inside);
    return { own: files, common: files };
  };
  const before = began === undefined ? undefined : names(began);
  return { before, now: names(now), inside, path: join(workspace, toText(inside)), prefix: "", top: workspace, at };
}

function replaced(): HeddleError {
  return new HeddleError("tool.failed", "the .git of the workspace is not what it was when the task began");
}

/** As git looks for it: in every folder above. */
async function findAbove(workspace: string, at: Repository["at"]): Promise<Repository | undefined> {
  for (let folder = dirname(workspace); ; folder = dirname(folder)) {
    const dotGit = join(folder, DOT_GIT);
    if (existsSync(dotGit)) {
      const entry = await gitFilesAt(folder).entry(DOT_GIT);
      const link = entry?.kind === "link" ? entry.to : undefined;
      const target = entry?.kind === "folder" ? dotGit : leadsTo(link, () => readPlain(dotGit));
      const where = { prefix: `${toRaw(relative(folder, workspace))}/`, top: folder, at };
      const found = target === undefined ? undefined : await outside(resolve(folder, target), where);
      if (found !== undefined) return found;
    }
    if (folder === dirname(folder)) return undefined;
  }
}

async function outside(
  path: string,
  where: Pick<Repository, "prefix" | "top" | "at">,
): Promise<Repository | undefined> {
  const real = realOf(path);
  if (real === undefined) return undefined;
  const files = where.at(real);
  const shared = (await files.read("commondir"))?.toString("utf8").replace(/[\r\n]+$/, "");
  const common = shared === undefined ? undefined : realOf(resolve(real, shared));
  const names = { own: files, common: common === undefined ? files : where.at(common) };
  if ((await names.own.entry("HEAD")) === undefined) return undefined;
  return { before: names, now: names, inside: undefined, path: common ?? real, ...where };
}

/** A `.git` that is a link, or a file that names the folder. */
function leadsTo(link: RawPath | undefined, read: () => Buffer | undefined): string | undefined {
  if (link !== undefined) return toText(link);
  const text = read()
    ?.toString("utf8")
    .replace(/[\r\n]+$/, "");
  return /^gitdir: ([^]+)$/.exec(text ?? "")?.[1];
}

function filesAt(path: string, workspace: string, began: TreeWithChanges): GitFiles {
  const inside = insideOf(path, workspace);
  return inside === undefined ? gitFilesAt(path) : gitFilesIn(began, inside);
}

function insideOf(path: string, workspace: string): RawPath | undefined {
  return path.startsWith(`${workspace}/`) ? toRaw(path.slice(workspace.length + 1)) : undefined;
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
