/**
 * Merges the work with what the repository has by now, in a clone of it, and judges the result in rooms that begin with the
 * owner's commit and its setup.
 */
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { CheckResult, TaskBaseline, TaskRecord } from "@heddle/protocol";
import { worktreesRoot } from "@heddle/tools";
import { toText } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { judgePicked, type JudgedRoom } from "../judge/judge-picked.ts";
import { freezeWork } from "../tree/freeze-work.ts";
import { keepTree } from "../tree/keep-tree.ts";
import { removeTree } from "../tree/remove-tree.ts";
import { prefixOf, type Built } from "./build-commit.ts";
import { branchOf, cloneAt, setUp, type Worktree } from "./open-worktree.ts";
import { protectedInCommits } from "./protected-commits.ts";
import { git, tryGit } from "./repository-git.ts";

export interface Joining {
  readonly worktree: Worktree;
  readonly built: Built;
  readonly commit: string;
  /** What the owner's repository has checked out now. */
  readonly head: string;
  /** Removed afterwards. */
  readonly folder: string;
}

export interface JoinOptions {
  readonly checkOptions: CheckOptions;
  readonly task: Pick<TaskRecord, "id" | "spec">;
  readonly baseline: TaskBaseline;
}

export type Joined =
  | { readonly commit: string; readonly failing: readonly CheckResult[] }
  | { readonly problem: string }
  /** A merge conflict, which the agent cannot resolve: it does not see the repository of today. */
  | { readonly obstacle: string };

/** For hosts where git has no identity. */
const IDENTITY = ["-c", "user.name=Heddle", "-c", "user.email=heddle@localhost"];
const WORK = "refs/heads/work";
const JOINED = "refs/heads/joined";

export async function joinAndJudge(joining: Joining, options: JoinOptions): Promise<Joined> {
  const { worktree, built, commit, head, folder } = joining;
  const { checkOptions, task } = options;
  const result = join(worktreesRoot(checkOptions.home), task.id, "result");
  await removeTree(result, checkOptions.signal);
  try {
    await cloneAt({
      repository: worktree.repository,
      commit: head,
      tree: result,
      branch: branchOf(task),
      signal: checkOptions.signal,
    });
    await built.git.run(["update-ref", WORK, commit]);
    await git(result, ["fetch", "--quiet", "--no-tags", built.git.folder, WORK], checkOptions);
    const end = await tryGit(
      result,
      [...IDENTITY, "merge", "--quiet", "--no-edit", "--no-verify", commit],
      checkOptions,
    );
    if (end.exitCode !== 0) {
      const output = `${end.stdout}\n${end.stderr}`.trim();
      return { obstacle: `the repository has changed since, and the work conflicts with it:\n${output}` };
    }
    const joined = await git(result, ["rev-parse", "--verify", "HEAD"], checkOptions);
    // Fetched before anything of the result is run.
    await built.git.run(["fetch", "--quiet", "--no-tags", result, `+HEAD:${JOINED}`]);
    const problem = await protectedInCommits({ git: built.git, tip: joined, owners: [worktree.base, head] });
    if (problem !== undefined) return { problem };
    await git(result, ["reset", "--quiet", "--hard", head], checkOptions);
    const failing = await judgeJoined({ result, joined, folder, prefix: toText(prefixOf(worktree)) }, options);
    return { commit: joined, failing };
  } finally {
    await removeTree(result, checkOptions.signal);
  }
}

async function judgeJoined(
  where: { readonly result: string; readonly joined: string; readonly folder: string; readonly prefix: string },
  { checkOptions, baseline }: JoinOptions,
): Promise<readonly CheckResult[]> {
  const { result, joined, folder, prefix } = where;
  const { signal } = checkOptions;
  await mkdir(join(result, prefix), { recursive: true });
  const workspace = await realpath(join(result, prefix));
  await setUp({ ...checkOptions, folder: workspace });
  const base = await keepTree(workspace, { into: join(folder, "base"), skip: [checkOptions.home], signal });
  await git(result, ["reset", "--quiet", "--hard", joined], checkOptions);
  const frozen = await freezeWork(workspace, base, { into: join(folder, "work"), skip: [checkOptions.home], signal });
  const [there, began] = [
    { ...checkOptions, folder: workspace },
    { ...baseline, folder: workspace },
  ];
  const room = { base, frozen, picked: frozen.changes, workspace };
  return failingIn(await judgePicked(there, { baseline: began, room }));
}

/** Why what comes back is not what was verified; empty: it is. */
export function failingIn(verdict: JudgedRoom): readonly CheckResult[] {
  const failing = verdict.results.filter(({ outcome, isFlaky }) => outcome !== "passed" || isFlaky === true);
  const broken = verdict.violations.map(({ message, kind }): CheckResult => ({
    name: `${kind} (on what comes back)`,
    kind: "merge",
    outcome: "failed",
    message,
    startedAt: Date.now(),
    durationMs: 0,
  }));
  return [...broken, ...failing.map(asFailure)];
}

/** A flaky pass is a failure. */
function asFailure(one: CheckResult): CheckResult {
  const flaky = { outcome: "failed", message: `flaky, it failed on the same files as well: ${one.message}` } as const;
  return { ...one, ...(one.outcome === "passed" ? flaky : {}), name: `${one.name} (on what comes back)` };
}
