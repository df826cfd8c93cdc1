/**
 * How a workspace was when a task began: a copy of it, kept where no agent writes, and what the checks found on that copy.
 * What passes already says nothing later, and how many tests there are is known. One baseline serves a task in one folder,
 * whatever attempts it takes: taken again after work was done, it would call that work the beginning.
 */
import { join } from "node:path";
import type { CheckResult, TaskBaseline } from "@heddle/protocol";
import { heddleFolders } from "@heddle/tools";
import type { CheckPlace, TestCounts } from "../checks/check.ts";
import { readHeadOf } from "../git/read-repository.ts";
import { leavesOf } from "../checks/names.ts";
import { runAll, withParts } from "../checks/run-all.ts";
import type { Ran } from "../checks/run-check.ts";
import { realFolder } from "../checks/workspace.ts";
import { openCheckRoom } from "../judge/open-check-room.ts";
import { openScratch } from "../judge/scratch.ts";
import { keepTree } from "../tree/keep-tree.ts";
import type { KeptTree } from "../tree/manifest.ts";

export interface BaselineOptions {
  /** Where the copy goes. */
  readonly into: string;
  /** An earlier copy of the same folder; what has not changed since is shared with it. */
  readonly like?: KeptTree | undefined;
  /** What earlier tasks left in it; absent: nothing is known of them. */
  readonly leftIn?: (base: KeptTree) => Promise<Pick<TaskBaseline, "left">>;
  readonly step?: (words: string) => void;
}

/** Throws `workspace.missing`, and what keeps the copy from being made; a check that fails or breaks is a fact like others. */
export async function takeBaseline(
  place: CheckPlace,
  { into, like, leftIn, step = () => undefined }: BaselineOptions,
): Promise<TaskBaseline> {
  const folder = await realFolder(place.folder);
  step("keep a copy of the workspace");
  const base = await keep(place, folder, { into, like });
  step("run the checks as they are before the work");
  const before = beginningOf(folder, base);
  await using room = openCheckRoom(place, { baseline: before, room: { base, picked: [], workspace: folder } });
  const git = await readGit(place, base, folder);
  const ran = await runAll(place, { ...room, baseline: { ...before, ...git } }, "baseline");
  const all = withParts(ran.map(({ result }) => result));
  const tests: Record<string, TestCounts> = {};
  for (const result of all) if (result.tests !== undefined) tests[result.name] = result.tests;
  return {
    ...before,
    ...git,
    takenAt: Date.now(),
    tests,
    boxes: boxesOf(ran),
    passed: all.filter(({ outcome }) => outcome === "passed").map(({ name }) => name),
    ...(await leftIn?.(base)),
  };
}

/** The checks as they are now, as if a task began: for whoever writes a spec. Throws `workspace.missing`. */
export async function runChecks(place: CheckPlace): Promise<readonly CheckResult[]> {
  const folder = await realFolder(place.folder);
  await using scratch = await openScratch(place.home, "try");
  const base = await keep(place, folder, { into: join(scratch.folder, "base") });
  const before = beginningOf(folder, base);
  await using room = openCheckRoom(place, { baseline: before, room: { base, picked: [], workspace: folder } });
  const git = await readGit(place, base, folder);
  const ran = await runAll(place, { ...room, baseline: { ...before, ...git } }, "baseline");
  return ran.map(({ result }) => result);
}

/** Heddle's own folders are no part of a workspace, wherever they lie. */
export function skippedFor({ home, masked = [] }: Pick<CheckPlace, "home" | "masked">): readonly string[] {
  return [...heddleFolders(home), ...masked];
}

function keep(
  place: CheckPlace,
  folder: string,
  { into, like }: Pick<BaselineOptions, "into" | "like">,
): Promise<KeptTree> {
  const { signal } = place;
  return keepTree(folder, { into, skip: skippedFor(place), signal, ...(like === undefined ? {} : { like }) });
}

/** What checks compare with before anything is known of them. */
function beginningOf(folder: string, { sha256, manifest, bytes }: KeptTree): TaskBaseline {
  const kept = { sha256, files: manifest.size, bytes };
  return { takenAt: Date.now(), folder, kept, tests: {}, boxes: {}, passed: [] };
}

function boxesOf(ran: readonly Ran[]): Readonly<Record<string, number>> {
  return Object.assign({}, ...ran.map(({ boxes }) => boxes));
}

/** Only where something will ask for it. A repository that cannot be read is said by the check that asks. */
async function readGit(
  { spec, signal }: CheckPlace,
  base: KeptTree,
  folder: string,
): Promise<Pick<TaskBaseline, "git">> {
  if (!leavesOf(spec.checks).some(({ kind }) => kind === "git")) return {};
  const git = await readHeadOf({ base, workspace: folder, signal }).catch(() => undefined);
  return git === undefined ? {} : { git };
}
