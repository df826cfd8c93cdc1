/**
 * How a workspace was when a task began. The checks are run once before anything is done: what passes already says nothing
 * later, and how many tests there are is known. One baseline serves a task in one folder, whatever attempts it takes: taken
 * again after work was done, it would call that work the beginning.
 */
import type { TaskBaseline } from "@heddle/protocol";
import type { CheckPlace, TestCounts } from "./checks/check.ts";
import { changedSince, readHead } from "./checks/git.ts";
import { leavesOf } from "./checks/names.ts";
import { findProtected } from "./checks/protect.ts";
import { openCheckPlace, runAll, withParts } from "./checks/run-all.ts";
import { hashTree, takeSnapshot } from "./checks/snapshot.ts";

/** Throws `workspace.missing`, and what keeps protections from being found; a check that fails or breaks is a fact like others. */
export async function takeBaseline(place: CheckPlace): Promise<TaskBaseline> {
  const { spec } = place;
  await using open = await openCheckPlace(place);
  const { files, commands } = open;
  const usesGit = leavesOf(spec.checks).filter((check) => check.kind === "git");
  const { results, boxes } = await runAll(place, open, undefined);
  const all = withParts(results);
  const passed = all.filter(({ outcome }) => outcome === "passed").map(({ name }) => name);
  const tests: Record<string, TestCounts> = {};
  for (const result of all) if (result.tests !== undefined) tests[result.name] = result.tests;
  const head = usesGit.length > 0 || spec.secondOpinion !== undefined ? await readHead(commands) : undefined;
  const dirty =
    head !== undefined && usesGit.some(({ only }) => only !== undefined)
      ? await changedSince(head.commit, commands)
      : [];
  // After the checks: what their commands write is not the agent's work.
  const held = await findProtected(files, spec);
  const snapshot = await takeSnapshot(files, spec, [...held.files, ...dirty]);
  const isAllVacuous = results.length > 0 && results.every(({ outcome }) => outcome === "passed");
  return {
    takenAt: Date.now(),
    folder: files.root,
    ...snapshot,
    protected: held.files.filter((path) => snapshot.files[path] !== undefined),
    scripts: held.scripts,
    ...(head === undefined ? {} : { git: head }),
    tests,
    boxes,
    passed,
    ...(isAllVacuous ? { tree: await hashTree(files, spec) } : {}),
  };
}
