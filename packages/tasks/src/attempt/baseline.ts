/**
 * The workspace when a task began: a copy kept where no agent writes, and the results of the checks on it. One baseline
 * serves all attempts in a folder: a later one would take the agent's work for the beginning.
 */
import { join } from "node:path";
import { defined, type CheckResult, type TaskBaseline } from "@heddle/protocol";
import { heddleFolders } from "@heddle/tools";
import type { CheckOptions, TestCounts } from "../checks/check.ts";
import { readHeadOf } from "../git/read-repository.ts";
import { leavesOf } from "../checks/names.ts";
import { runAll, withParts } from "../checks/run-all.ts";
import type { Ran } from "../checks/run-check.ts";
import { realFolder } from "../checks/workspace.ts";
import { openCheckRoom } from "../judge/open-check-room.ts";
import { openScratch } from "../judge/scratch.ts";
import { keepTree, type KeepOptions } from "../tree/keep-tree.ts";
import type { KeptTree } from "../tree/manifest.ts";

export interface BaselineOptions {
  readonly into: string;
  /** An earlier copy of the same folder; unchanged files are shared with it. */
  readonly like?: KeptTree | undefined;
  /** Times of the beginning, where those of the workspace were chosen by earlier agents. */
  readonly timesOf?: KeepOptions["timesOf"];
  /** What earlier tasks left in the workspace. */
  readonly leftIn?: (base: KeptTree) => Promise<Pick<TaskBaseline, "left">>;
  readonly step?: (name: string) => void;
}

/** Throws `workspace.missing`, and whatever keeps the copy from being made; a check that fails or breaks is recorded. */
export async function takeBaseline(
  checkOptions: CheckOptions,
  { into, like, timesOf, leftIn, step = () => undefined }: BaselineOptions,
): Promise<TaskBaseline> {
  step("keep a copy of the workspace");
  const base = await keep(checkOptions, { into, like, timesOf });
  step("run the checks as they are before the work");
  const { before, ran } = await runOn(checkOptions, base);
  const all = withParts(ran.map(({ result }) => result));
  const tests: Record<string, TestCounts> = {};
  for (const result of all) if (result.tests !== undefined) tests[result.name] = result.tests;
  return {
    ...before,
    takenAt: Date.now(),
    tests,
    boxes: Object.assign({}, ...ran.map(({ boxes }) => boxes)),
    passed: all.filter(({ outcome }) => outcome === "passed").map(({ name }) => name),
    ...(await leftIn?.(base.tree)),
  };
}

/** The checks as they are now, as if a task began: for authors of a spec. Throws `workspace.missing`. */
export async function runChecks(checkOptions: CheckOptions): Promise<readonly CheckResult[]> {
  await using scratch = await openScratch(checkOptions.home, "try");
  const { ran } = await runOn(checkOptions, await keep(checkOptions, { into: join(scratch.folder, "base") }));
  return ran.map(({ result }) => result);
}

/** Heddle's own folders are not part of a workspace, wherever they are. */
export function skippedFor({ home, masked = [] }: Pick<CheckOptions, "home" | "masked">): readonly string[] {
  return [...heddleFolders(home), ...masked];
}

interface Beginning {
  readonly folder: string;
  readonly tree: KeptTree;
}

async function keep(
  checkOptions: CheckOptions,
  { into, like, timesOf }: Pick<BaselineOptions, "into" | "like" | "timesOf">,
): Promise<Beginning> {
  const folder = await realFolder(checkOptions.folder);
  const options = { into, skip: skippedFor(checkOptions), signal: checkOptions.signal };
  return { folder, tree: await keepTree(folder, { ...options, ...defined({ like, timesOf }) }) };
}

async function runOn(
  checkOptions: CheckOptions,
  { folder, tree }: Beginning,
): Promise<{ readonly before: TaskBaseline; readonly ran: readonly Ran[] }> {
  const { sha256, manifest, bytes } = tree;
  const kept = { sha256, files: manifest.size, bytes };
  const bare: TaskBaseline = { takenAt: Date.now(), folder, kept, tests: {}, boxes: {}, passed: [] };
  await using room = openCheckRoom(checkOptions, {
    baseline: bare,
    room: { base: tree, picked: [], workspace: folder },
  });
  const before = { ...bare, ...(await readGit(checkOptions, tree, folder)) };
  return { before, ran: await runAll(checkOptions, { ...room, baseline: before }, "baseline") };
}

/** Only where a check needs it. A repository that cannot be read is reported by that check. */
async function readGit(
  { spec, signal }: CheckOptions,
  base: KeptTree,
  folder: string,
): Promise<Pick<TaskBaseline, "git">> {
  if (!leavesOf(spec.checks).some(({ kind }) => kind === "git")) return {};
  const git = await readHeadOf({ base, workspace: folder, signal }).catch(() => undefined);
  return git === undefined ? {} : { git };
}
