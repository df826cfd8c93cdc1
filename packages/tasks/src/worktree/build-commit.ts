/**
 * Builds the commit that comes back from the judged files, byte for byte, on the commit the worktree began with. Git never
 * runs in the agent's tree, so none of its filters, line-end rules or indexes matter. The result is compared with the
 * judged manifest.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join, relative, resolve } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { toRaw, toSystem, toText } from "@heddle/tools/raw-path";
import { listed } from "../checks/shown.ts";
import { gitFilesAt } from "../git/git-files.ts";
import { gitModeOf, readTree, type GitTreeEntry } from "../git/git-tree.ts";
import { ignoredOf } from "../git/ignored.ts";
import { formatOf } from "../git/names.ts";
import { objectFolders } from "../git/objects.ts";
import { openOwnGit, type ObjectFormat, type OwnGit } from "../git/own-git.ts";
import { filtersOf, isGits } from "../git/uncommitted.ts";
import { shownPath } from "../judge/work-changes.ts";
import type { Change, FrozenWork, KeptTree, RawPath, TreeEntry } from "../tree/manifest.ts";
import type { Worktree } from "./open-worktree.ts";
import { git, tryGit } from "./repository-git.ts";

export interface WorkToDeliver {
  readonly base: KeptTree;
  readonly frozen: FrozenWork;
  readonly picked: readonly Change[];
}

export interface BuildOptions {
  readonly worktree: Worktree;
  readonly work: WorkToDeliver;
  readonly message: string;
  /** Made here, and not removed. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

export interface Built {
  /** A repository of Heddle's own that has the commit. */
  readonly git: OwnGit;
  /** undefined: git has nothing to bring back. */
  readonly commit: string | undefined;
  readonly delivered: ReadonlyMap<RawPath, Delivered>;
  /** Changes that git ignores or cannot store; paths in the workspace. */
  readonly leftOut: readonly RawPath[];
}

/** undefined: removed. */
export type Delivered = GitTreeEntry | undefined;

const WORK_REF = "refs/heads/work";

export async function buildCommit(options: BuildOptions): Promise<Built> {
  const { worktree, work, folder, signal } = options;
  const format = formatOf(worktree.base);
  const common = resolve(
    worktree.repository,
    await git(worktree.repository, ["rev-parse", "--git-common-dir"], options),
  );
  const objects = await objectFolders(gitFilesAt(common), { path: common, at: gitFilesAt });
  const refs = new Map([["refs/before/0", worktree.base]]);
  const own = await openOwnGit({ folder: join(folder, "build"), objects, refs, format, signal });
  const prefix = prefixOf(worktree);
  const files = work.picked.filter(({ path, now, before }) => !isGits(path, undefined) && [now, before].some(isEntry));
  const repository = { before: { own: gitFilesAt(common), common: gitFilesAt(common) }, prefix, top: worktree.tree };
  const there = files.filter(({ now }) => isEntry(now)).map(({ path }) => path);
  const began = await readTree(own, worktree.base, prefix);
  // Ignore rules do not apply to files that are in the repository already.
  const fresh = there.filter((path) => !began.has(path));
  const ignored = await ignoredOf(fresh, { base: work.base, repository, scratch: folder, signal });
  const wanted = new Map<RawPath, Change>();
  const leftOut = [...ignored];
  for (const change of files) {
    if (ignored.has(change.path)) continue;
    if (change.now !== undefined && gitModeOf(change.now) === undefined && change.now.kind !== "folder") {
      leftOut.push(change.path);
    } else if (isEntry(change.now) || began.has(change.path)) wanted.set(change.path, change);
  }
  await refuseFiltered(own, [...wanted.keys()], options);
  const delivered = new Map<RawPath, Delivered>();
  if (wanted.size === 0) return { git: own, commit: undefined, delivered, leftOut };
  for (const [path, { now }] of wanted) {
    delivered.set(
      `${prefix}${path}`,
      now === undefined || !isEntry(now) ? undefined : await asJudged(work, path, now, format),
    );
  }
  const input = streamOf(options, prefix, [...wanted.values()]);
  await own.run(["fast-import", "--quiet", "--date-format=raw"], { input });
  const commit = (await own.run(["rev-parse", "--verify", WORK_REF])).toString("latin1").trim();
  await requireJudged(own, { base: worktree.base, commit, delivered });
  return { git: own, commit, delivered, leftOut };
}

/** Content that a filter of the owner's configuration converts (git-lfs) would not come back as it was judged. */
async function refuseFiltered(
  own: OwnGit,
  paths: readonly RawPath[],
  { worktree, work, signal }: BuildOptions,
): Promise<void> {
  const filters = await filtersOf(own, paths, work.base.folder);
  for (const [path, name] of filters) {
    const key = `^filter\\.${name.replaceAll(/[^A-Za-z0-9]/g, ".")}\\.(clean|process)$`;
    const end = await tryGit(worktree.repository, ["config", "--get-regexp", key], { signal });
    if (end.exitCode !== 0) continue;
    const message = `${toText(path)} is stored through the filter ${name} of the repository, so what was judged cannot be delivered byte for byte; take it from ${worktree.folder} by hand`;
    throw new HeddleError("task.rejected", message);
  }
}

export function prefixOf({ tree, folder }: Worktree): string {
  const below = relative(tree, folder);
  return below === "" ? "" : `${toRaw(below)}/`;
}

/** Anything but a folder, which is seen by its content. */
function isEntry(entry: TreeEntry | undefined): boolean {
  return entry !== undefined && entry.kind !== "folder";
}

/** The entry that git must have. The content is hashed again: it must still be what was judged. */
async function asJudged(
  work: WorkToDeliver,
  path: RawPath,
  entry: TreeEntry,
  format: ObjectFormat,
): Promise<GitTreeEntry> {
  const blob = createHash(format).update(`blob ${entry.size}\0`);
  const content = createHash("sha256");
  for await (const chunk of contentOf(work, path, entry)) {
    blob.update(chunk);
    content.update(chunk);
  }
  if (content.digest("hex") !== entry.sha256) {
    throw new HeddleError("store.failed", `the frozen work has changed since it was judged: ${toText(path)}`);
  }
  return { mode: gitModeOf(entry) ?? "", object: blob.digest("hex") };
}

async function* contentOf({ frozen }: WorkToDeliver, path: RawPath, entry: TreeEntry): AsyncGenerator<Buffer> {
  if (entry.kind === "link") yield Buffer.from(entry.target ?? "", "latin1");
  else {
    for await (const chunk of createReadStream(toSystem(`${toRaw(frozen.folder)}/${path}`))) yield chunk as Buffer;
  }
}

/** For hosts where git has no identity. */
const COMMITTER = "Heddle <heddle@localhost>";

/** In the format of `git fast-import`: content and names as bytes, no file of a tree is touched. */
async function* streamOf(
  { worktree, work, message }: BuildOptions,
  prefix: string,
  changes: readonly Change[],
): AsyncGenerator<Buffer> {
  const text = Buffer.from(message, "utf8");
  const at = `${Math.floor(Date.now() / 1000)} +0000`;
  yield Buffer.from(
    `commit ${WORK_REF}\ncommitter ${COMMITTER} ${at}\ndata ${text.length}\n${message}\nfrom ${worktree.base}\n`,
  );
  // Removed first: a file may replace a folder.
  for (const { path } of changes) yield Buffer.from(`D ${quoted(`${prefix}${path}`)}\n`);
  for (const { path, now } of changes) {
    if (now === undefined || !isEntry(now)) continue;
    yield Buffer.from(`M ${gitModeOf(now)} inline ${quoted(`${prefix}${path}`)}\ndata ${now.size}\n`);
    yield* contentOf(work, path, now);
    yield Buffer.from("\n");
  }
}

function quoted(path: RawPath): string {
  const plain = path.replaceAll(
    /[^\x20-\x7e]|["\\]/g,
    (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, "0")}`,
  );
  return `"${plain}"`;
}

/** The commit differs from its base only in what was picked, each as it was judged. */
export async function requireJudged(
  own: OwnGit,
  {
    base,
    commit,
    delivered,
  }: { readonly base: string; readonly commit: string; readonly delivered: Built["delivered"] },
): Promise<void> {
  const [began, built] = [await readTree(own, base), await readTree(own, commit)];
  for (const path of new Set([...began.keys(), ...built.keys(), ...delivered.keys()])) {
    const wanted = delivered.has(path) ? delivered.get(path) : began.get(path);
    const found = built.get(path);
    if (wanted?.mode === found?.mode && wanted?.object === found?.object) continue;
    throw new HeddleError("task.rejected", `what would be delivered is not what was judged: ${toText(path)}`);
  }
}

/** Why links with the absolute path of the draft or worktree cannot be delivered; undefined: there are none. */
export function tiedLinks(picked: readonly Change[]): string | undefined {
  const tied = picked.filter(({ now }) => now?.target?.startsWith("/") === true);
  if (tied.length === 0) return undefined;
  const names = listed(tied.map(({ path }) => shownPath(path)));
  return `links with the whole path of the folder where the task works lead nowhere once the work is delivered: ${names}; make them relative (ln -sr)`;
}
