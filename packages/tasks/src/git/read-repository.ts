/**
 * Reads the repository of a judged tree without trusting it: Heddle parses its refs and fetches its objects into a git
 * directory of its own, so that each is what its content says.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { findRepository, type JudgedTree, type Repository } from "./find-repository.ts";
import { formatOf } from "./names.ts";
import { objectFolders, takeAddedObjects } from "./objects.ts";
import { openOwnGit, type ObjectFolder, type OwnGit } from "./own-git.ts";
import { readHead, readRefs, type Head } from "./refs.ts";
import { outputOf } from "./run-git.ts";

export interface ReadRepository extends AsyncDisposable {
  readonly repository: Repository;
  readonly git: OwnGit;
  readonly head: Head;
  readonly before: Head | undefined;
}

/** Refs of the beginning; all other commits are new. */
export const BEFORE_REFS = "refs/before/";

/** From files alone; undefined: there is no repository, or no commit. */
export async function readHeadOf(judged: JudgedTree): Promise<Head | undefined> {
  const repository = await findRepository(judged);
  return repository === undefined ? undefined : await readHead(repository.now);
}

/**
 * undefined: there is no repository, or no commit. Throws `tool.failed` when it cannot be read. `began`: the commit at the
 * beginning, of a repository outside the workspace, which is not kept.
 */
export async function readRepository(
  judged: JudgedTree,
  { began }: { readonly began?: string | undefined } = {},
): Promise<ReadRepository | undefined> {
  const repository = await findRepository(judged);
  const head = repository === undefined ? undefined : await readHead(repository.now);
  if (repository === undefined || head === undefined) return undefined;
  const scratch = await mkdtemp(join(dirname((judged.frozen ?? judged.base).folder), "git-"));
  try {
    const before = await headBefore(repository, began);
    const refs = await refsBefore(repository, { head, before });
    const objects = await objectsBefore(repository);
    const own = { objects, format: formatOf(head.commit), signal: judged.signal };
    const named = new Map([...refs].map((commit, index) => [`${BEFORE_REFS}${index}`, commit]));
    const git = await openOwnGit({ ...own, folder: join(scratch, "own"), refs: named });
    if (!refs.has(head.commit)) await fetchNew(git, { judged, repository, head, scratch, own });
    const known = await git.try(["cat-file", "-e", `${head.commit}^{commit}`]);
    if (known.exitCode !== 0)
      throw new HeddleError("tool.failed", `the repository does not have its commit ${head.commit}`);
    const dispose = (): Promise<void> => rm(scratch, { recursive: true, force: true });
    return { repository, git, head, before, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await rm(scratch, { recursive: true, force: true });
    throw error;
  }
}

async function headBefore({ before, inside }: Repository, began: string | undefined): Promise<Head | undefined> {
  if (inside === undefined) return began === undefined ? undefined : { commit: began };
  return before === undefined ? undefined : await readHead(before).catch(() => undefined);
}

/**
 * Outside the workspace nothing is kept, so the refs of the beginning are unknown: a commit that another ref than the
 * current branch reaches counts as old.
 */
async function refsBefore(
  { before, inside }: Repository,
  { head, before: began }: { readonly head: Head; readonly before: Head | undefined },
): Promise<ReadonlySet<string>> {
  const refs = new Map(before === undefined ? [] : await readRefs(before));
  if (inside === undefined && head.branch !== undefined) refs.delete(`refs/heads/${head.branch}`);
  return new Set([...refs.values(), ...(began === undefined ? [] : [began.commit])]);
}

async function objectsBefore({ before, path, at }: Repository): Promise<readonly ObjectFolder[]> {
  return before === undefined ? [] : await objectFolders(before.common, { path, at });
}

interface Fetch {
  readonly judged: JudgedTree;
  readonly repository: Repository;
  readonly head: Head;
  readonly scratch: string;
  readonly own: Pick<Parameters<typeof openOwnGit>[0], "objects" | "format" | "signal">;
}

async function fetchNew(git: OwnGit, { judged: { frozen }, repository, head, scratch, own }: Fetch): Promise<void> {
  if (frozen === undefined || repository.inside === undefined) return;
  const refs = new Map([["refs/heads/new", head.commit]]);
  await using untrusted = await openOwnGit({ ...own, folder: join(scratch, "untrusted"), refs });
  await takeAddedObjects(frozen, repository.inside, untrusted.folder);
  const args = ["fetch", "--quiet", "--no-tags", untrusted.folder, "refs/heads/new:refs/heads/new"];
  const end = await git.try(args);
  if (end.exitCode === 0) return;
  throw new HeddleError("tool.failed", `commits of the repository cannot be read: ${outputOf(end)}`);
}
