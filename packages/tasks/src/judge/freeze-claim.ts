/**
 * The work of a claim, frozen: what had changed when the agent said that it is done, copied where nobody writes. It is made
 * once for each round; whoever takes over after a crash goes on from it when it is whole.
 */
import { relative } from "node:path";
import { realpath } from "node:fs/promises";
import { HeddleError, isHeddleError, type TaskBaseline, type TaskRecord } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { JudgedWork } from "@heddle/protocol/tasks";
import { toRaw } from "@heddle/tools/raw-path";
import { skippedFor } from "../attempt/baseline.ts";
import type { CheckOptions } from "../checks/check.ts";
import { leavesOf } from "../checks/names.ts";
import { freezeWork, readFrozenWork } from "../tree/freeze-work.ts";
import { readKeptTree } from "../tree/keep-tree.ts";
import type { FrozenWork, KeptTree } from "../tree/manifest.ts";
import { removeTree } from "../tree/remove-tree.ts";
import { openToOwner } from "../tree/tree-root.ts";
import { isWanted, mayDeliverBelow } from "./pick.ts";
import { baseFolder, earlierWork, workFolder } from "./task-rooms.ts";

export interface FrozenClaim {
  readonly base: KeptTree;
  readonly frozen: FrozenWork;
}

/** The beginning, as it was kept. Throws where it is not there as it was. */
export async function readBase(
  home: string,
  { id }: Pick<TaskRecord, "id">,
  baseline: TaskBaseline,
): Promise<KeptTree> {
  const again = `heddle task retry ${id} begins with a new one`;
  if (baseline.kept === undefined)
    throw new HeddleError("store.damaged", `the task began without a copy of its workspace to judge on; ${again}`);
  const base = await readKeptTree(baseFolder(home, id));
  if (base === undefined || base.sha256 !== baseline.kept.sha256)
    throw new HeddleError("store.damaged", `the copy of the workspace from the beginning no longer exists; ${again}`);
  return base;
}

/** What was frozen for this round; undefined: nothing yet, or not whole. */
export async function readFrozen(
  home: string,
  task: Pick<TaskRecord, "id" | "round">,
): Promise<FrozenWork | undefined> {
  try {
    return await readFrozenWork(workFolder(home, task.id, task.round));
  } catch (error) {
    if (isHeddleError(error) && error.code === "store.damaged") return undefined;
    throw error;
  }
}

type Claim = Pick<TaskRecord, "id" | "round"> & { readonly lastCheck?: Pick<Judged, "round"> };
type Judged = NonNullable<TaskRecord["lastCheck"]>;

/** Nothing of the agent's may run any more. */
export async function freezeClaim(checkOptions: CheckOptions, task: Claim, base: KeptTree): Promise<FrozenWork> {
  const { home, spec, signal } = checkOptions;
  const needsAll = spec.worktree !== undefined || spec.secondOpinion !== undefined || hasGit(spec.checks);
  openToOwner(checkOptions.folder);
  const frozen = await freezeWork(checkOptions.folder, base, {
    into: workFolder(home, task.id, task.round),
    skip: skippedFor(checkOptions),
    signal,
    needsAll,
    ...(needsAll || spec.deliver === undefined
      ? {}
      : { wanted: isWanted(spec.deliver), wantedBelow: mayDeliverBelow(spec.deliver) }),
  });
  failpoint("task.after-freeze");
  // What was judged last can be judged again until there is a newer verdict.
  await dropEarlier(checkOptions, task, task.lastCheck?.round);
  return frozen;
}

/** Work of earlier rounds; the record keeps its hash. */
export async function dropEarlier(
  { home, signal }: Pick<CheckOptions, "home" | "signal">,
  { id, round }: Pick<TaskRecord, "id" | "round">,
  kept?: number,
): Promise<void> {
  const needed = kept === undefined ? undefined : workFolder(home, id, kept);
  for (const folder of await earlierWork(home, id, round)) if (folder !== needed) await removeTree(folder, signal);
}

function hasGit(checks: TaskRecord["spec"]["checks"]): boolean {
  return leavesOf(checks).some(({ kind }) => kind === "git");
}

/** The file that the task came from, where the work changed it in the user's own folder. */
export async function changedSpec(
  { spec, source }: Pick<TaskRecord, "spec" | "source">,
  { folder }: Pick<TaskBaseline, "folder">,
  { changes }: FrozenWork,
): Promise<Pick<JudgedWork, "spec">> {
  if (source.ref === undefined || source.sha256 === undefined || spec.worktree !== undefined) return {};
  const real = await realpath(source.ref).catch(() => undefined);
  if (real === undefined || !real.startsWith(`${folder}/`)) return {};
  const path = toRaw(relative(folder, real));
  const sha256 = changes.find((change) => change.path === path)?.now?.sha256;
  return sha256 === undefined ? {} : { spec: { path: real, sha256 } };
}
