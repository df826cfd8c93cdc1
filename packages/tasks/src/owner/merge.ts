/**
 * Verified work that waits on a branch or in a patch, brought onto the branch that is checked out in its repository: by the
 * same way as a verdict does it with `merge: commit`, so what comes back is what was judged, and is judged once more where
 * the repository has changed since. Done twice, the second time finds it there.
 */
import { join } from "node:path";
import { HeddleError, type By, type TaskRecord } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";
import { worktreesRoot } from "@heddle/tools";
import { readFrozen } from "../judge/freeze-claim.ts";
import { changeTask } from "../queue/change.ts";
import { mergeBack } from "../worktree/merge-back.ts";
import { readWorktree } from "../worktree/open-worktree.ts";
import { deliveredWork } from "./delivered-work.ts";
import { lastJudgement, readLog, requireBase } from "./recorded.ts";

export async function mergeTask(
  { journal, home, by }: { readonly journal: Journal; readonly home: string } & By,
  task: TaskRecord,
  { signal }: { readonly signal: AbortSignal },
): Promise<TaskRecord> {
  const spec = requireMergeable(task);
  const log = await readLog(journal, task.id);
  const { base, baseline } = await requireBase(home, task, log);
  const frozen = await readFrozen(home, task);
  const tree = await readWorktree(join(worktreesRoot(home), task.id));
  if (frozen === undefined || tree === undefined) throw gone(task);
  const { folder } = baseline;
  const picked = deliveredWork(task, lastJudgement(log), { base, frozen, folder });
  const { merged, results } = await mergeBack({
    checkOptions: { folder, spec, home, signal },
    task: { id: task.id, spec },
    baseline,
    work: { base, frozen, picked },
  });
  if (merged === undefined) {
    const why = results.filter(({ outcome }) => outcome !== "passed").map(({ message }) => message);
    throw new HeddleError("task.illegal", `the work of ${task.id} was not merged: ${why.join("; ")}`);
  }
  const { how, ref } = merged;
  return changeTask(journal, task.id, {
    author: by,
    decide: ({ attempt, merged: known }) =>
      known?.ref === ref ? [] : [{ type: "task.merged", v: 1, attempt, how, ref }],
  });
}

/** The spec as it would be if its verdict brought the work back as a commit. */
function requireMergeable({ id, state, spec, merged }: TaskRecord): TaskRecord["spec"] {
  const refuse = (why: string): HeddleError => new HeddleError("task.illegal", `task ${id} ${why}`);
  if (state !== "verified") throw refuse(`is ${state}; only verified work is merged`);
  if (spec.worktree === undefined || spec.agents !== undefined)
    throw refuse("did not work in a worktree of its own, so there is nothing to merge");
  if (merged?.how === "commit") throw refuse(`is merged already, as ${merged.ref}`);
  return { ...spec, worktree: { ...spec.worktree, merge: "commit" } };
}

function gone({ id, merged }: TaskRecord): HeddleError {
  const by = merged?.how === "patch" ? `git apply ${merged.ref}` : `git merge ${merged?.ref ?? "BRANCH"}`;
  return new HeddleError("task.illegal", `what was kept of ${id} no longer exists; merge it by hand: ${by}`);
}
