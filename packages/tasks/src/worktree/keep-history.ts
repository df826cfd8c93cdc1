/**
 * Keeps the agent's own commits if each touches only what is delivered, the last one has exactly the built tree, and none
 * has a protected path.
 */
import { toRaw } from "@heddle/tools/raw-path";
import { readRepository } from "../git/read-repository.ts";
import type { Built, WorkToDeliver } from "./build-commit.ts";
import type { Worktree } from "./open-worktree.ts";
import { changesIn, protectedInCommits } from "./protected-commits.ts";

/** Longer histories are not kept. */
const MAX_COMMITS = 1_000;
const HISTORY_REF = "refs/heads/history";

export interface HistoryOptions {
  readonly worktree: Worktree;
  readonly work: WorkToDeliver;
  readonly built: Built & { readonly commit: string };
  readonly signal: AbortSignal;
}

/** The agent's last commit, fetched into the repository of what was built; undefined: it cannot be kept. */
export async function keepHistory({ worktree, work, built, signal }: HistoryOptions): Promise<string | undefined> {
  const { git } = built;
  try {
    await using read = await readRepository({ ...work, workspace: worktree.folder, signal }, { began: worktree.base });
    if (read === undefined || read.head.commit === worktree.base) return undefined;
    const tip = read.head.commit;
    const treeOf = async (own: typeof git, commit: string): Promise<string> =>
      (await own.run(["rev-parse", "--verify", `${commit}^{tree}`])).toString("latin1");
    if ((await treeOf(read.git, tip)) !== (await treeOf(git, built.commit))) return undefined;
    const count = await read.git.run(["rev-list", "--count", tip, "--not", worktree.base, "--"]);
    if (Number(count.toString("latin1")) > MAX_COMMITS) return undefined;
    await read.git.run(["update-ref", HISTORY_REF, tip]);
    const fetch = ["-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-tags", read.git.folder];
    await git.run([...fetch, `${HISTORY_REF}:${HISTORY_REF}`]);
    const commits = { git, tip, owners: [worktree.base] };
    const isWithin = (await changesIn(commits)).every(({ path }) => built.delivered.has(toRaw(path)));
    return isWithin && (await protectedInCommits(commits)) === undefined ? tip : undefined;
  } catch {
    signal.throwIfAborted();
    // A repository that cannot be read has no history to keep; nothing is delivered from it.
    return undefined;
  }
}
