/**
 * How a workspace was when a task began. The checks are run once before anything is done: what passes already says nothing
 * later, and how many tests there are is known. One baseline serves a task in one folder, whatever attempts it takes: taken
 * again after work was done, it would call that work the beginning.
 */
import type { CheckResult, TaskBaseline } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import type { CheckPlace, TestCounts } from "./checks/check.ts";
import type { Commands } from "./checks/commands.ts";
import { changedSince, readHead } from "./checks/git.ts";
import { leavesOf } from "./checks/names.ts";
import { findProtected } from "./checks/protect.ts";
import { openCheckPlace, runAll, withParts, type OpenPlace } from "./checks/run-all.ts";
import { hashTree, takeSnapshot } from "./checks/snapshot.ts";

/** Throws `workspace.missing`, and what keeps protections from being found; a check that fails or breaks is a fact like others. */
export async function takeBaseline(place: CheckPlace): Promise<TaskBaseline> {
  const { spec } = place;
  await using open = await openCheckPlace(place);
  const { files, commands } = open;
  const held = await findProtected(files, spec);
  const before = await beginNow(place, open, held.files);
  const { results, boxes } = await runAll(place, open, before);
  const all = withParts(results);
  const tests: Record<string, TestCounts> = {};
  for (const result of all) if (result.tests !== undefined) tests[result.name] = result.tests;
  // Once more after the checks: what their commands write is not the agent's work, and nothing that runs protects it.
  const git = await readGit(spec, commands);
  const after = await takeSnapshot(files, spec, [...held.files, ...(git?.uncommitted ?? [])]);
  const isHeld = (path: string): boolean =>
    (after.files[path] ?? "") !== "" && (after.files[path] === before.files[path] || held.byName.has(path));
  const isAllVacuous = results.length > 0 && results.every(({ outcome }) => outcome === "passed");
  return {
    ...before,
    ...after,
    takenAt: Date.now(),
    protected: held.files.filter(isHeld),
    scripts: held.scripts,
    ...(git === undefined ? {} : { git }),
    tests,
    boxes,
    passed: all.filter(({ outcome }) => outcome === "passed").map(({ name }) => name),
    ...(isAllVacuous ? { tree: await hashTree(files, spec) } : {}),
  };
}

/** The checks as they are now, as if a task began: for whoever writes a spec. Throws `workspace.missing`. */
export async function runChecks(place: CheckPlace): Promise<readonly CheckResult[]> {
  await using open = await openCheckPlace(place);
  return (await runAll(place, open, await beginNow(place, open, []))).results;
}

/** What checks compare with before anything is known of them. */
async function beginNow(place: CheckPlace, open: OpenPlace, more: readonly string[]): Promise<TaskBaseline> {
  const git = await readGit(place.spec, open.commands);
  return {
    takenAt: Date.now(),
    folder: open.files.root,
    ...(await takeSnapshot(open.files, place.spec, [...more, ...(git?.uncommitted ?? [])])),
    protected: [],
    scripts: {},
    ...(git === undefined ? {} : { git }),
    tests: {},
    boxes: {},
    passed: [],
  };
}

/** Only where something will ask for it: it costs a few processes. */
async function readGit(spec: TaskSpec, commands: Commands): Promise<TaskBaseline["git"]> {
  const checks = leavesOf(spec.checks).filter((check) => check.kind === "git");
  if (checks.length === 0 && spec.secondOpinion === undefined) return undefined;
  const head = await readHead(commands);
  if (head === undefined || checks.every(({ only }) => only === undefined)) return head;
  return { ...head, uncommitted: [...(await changedSince(head.commit, commands))] };
}
