/**
 * Decides whether work is done: runs every check of a task where the work was done, after its last write, against what was
 * there when it began.
 *
 *   workspace there? ─▶ files as they are ─▶ checks, in order ─▶ files the same? ──yes──▶ violations, vacuous ─▶ verdict
 *                            ▲                                        │ no, once
 *                            └────────────────────────────────────────┘ no, again: error
 *
 * It passes when there are checks, all of them passed, nothing protected was touched, and the work left a trace: either a
 * check that did not pass before, or some change in the workspace. An error is never a pass.
 */
import { lstat, realpath } from "node:fs/promises";
import { toHeddleError, type CheckResult, type CheckViolation, type TaskBaseline } from "@heddle/protocol";
import type { CheckPlace, TestCounts } from "./checks/check.ts";
import { everyNamed, nameChecks } from "./checks/names.ts";
import { findViolations } from "./checks/protect.ts";
import { openCheckPlace, runAll, withParts, type OpenPlace } from "./checks/run-all.ts";
import { listed } from "./checks/shown.ts";
import { changedBetween, hashTree, takeSnapshot } from "./checks/snapshot.ts";
import { ran } from "./checks/tests.ts";

export interface Verdict {
  /** In the order of the spec, and after them what is said of the run as a whole. */
  readonly results: readonly CheckResult[];
  readonly violations: readonly CheckViolation[];
  readonly passed: boolean;
}

/** How often the checks are run until nothing changes under them. */
const MAX_RUNS = 2;

/** Throws only when it is stopped. */
export async function verifyWork(place: CheckPlace, baseline: TaskBaseline): Promise<Verdict> {
  const missing = await workspaceFault(place, baseline);
  if (missing !== undefined) return unjudged(place, missing.message, [missing]);
  try {
    await using open = await openCheckPlace(place);
    return await verifyIn(place, open, baseline);
  } catch (error) {
    place.signal.throwIfAborted();
    // It went away while it was looked at, or something in it cannot be looked at.
    const gone = await workspaceFault(place, baseline);
    if (gone !== undefined) return unjudged(place, gone.message, [gone]);
    return unjudged(place, `the work could not be judged: ${toHeddleError(error).message}`, []);
  }
}

async function verifyIn(place: CheckPlace, open: OpenPlace, baseline: TaskBaseline): Promise<Verdict> {
  // Before the checks: what their commands write is not the agent's work.
  const isUntouched = baseline.tree !== undefined && (await hashTree(open.files, place.spec)) === baseline.tree;
  const { results: ofChecks, atRest } = await runUntilAtRest(place, open, baseline);
  const flagged = ofChecks.map((result) => flagVacuous(result, baseline));
  const traceless = isUntouched && flagged.every(({ isVacuous }) => isVacuous === true) ? [nothingDone()] : [];
  const violations = [
    ...(await findViolations(open.files, place.spec, baseline)),
    ...fewerTests(place, ofChecks, baseline),
  ];
  const results = [...flagged, ...atRest, ...traceless];
  const passed = violations.length === 0 && flagged.length > 0 && results.every(({ outcome }) => outcome === "passed");
  return { results, violations, passed };
}

async function runUntilAtRest(
  place: CheckPlace,
  open: OpenPlace,
  baseline: TaskBaseline,
): Promise<{ results: readonly CheckResult[]; atRest: readonly CheckResult[] }> {
  const startedAt = Date.now();
  let before = await takeSnapshot(open.files, place.spec, baseline.protected);
  const moved: string[] = [];
  for (let run = 1; ; run += 1) {
    const { results } = await runAll(place, open, baseline);
    const after = await takeSnapshot(open.files, place.spec, baseline.protected);
    const changed = changedBetween(before, after);
    if (changed.length === 0 && run === 1) return { results, atRest: [] };
    if (changed.length > 0) moved.push(...changed);
    const isAtRest = changed.length === 0;
    if (isAtRest || run === MAX_RUNS) {
      const files = listed([...new Set(moved)]);
      const message = isAtRest
        ? `${files} changed while the checks ran, so they were run again`
        : `${files} kept changing while the checks ran: something still writes, or a check writes something else each time`;
      const outcome = isAtRest ? "passed" : "error";
      return { results, atRest: [wholeResult("workspace at rest", outcome, { message, startedAt })] };
    }
    before = after;
  }
}

function flagVacuous(result: CheckResult, { passed }: TaskBaseline): CheckResult {
  const flag = <R extends CheckResult>(one: R): R =>
    one.outcome === "passed" && passed.includes(one.name) ? { ...one, isVacuous: true } : one;
  const parts = result.parts?.map(flag);
  return { ...flag(result), ...(parts === undefined ? {} : { parts }) };
}

function nothingDone(): CheckResult {
  const message = "every check passed before the task began, and nothing has changed since";
  return wholeResult("work was done", "failed", { message, startedAt: Date.now() });
}

function fewerTests(
  { spec }: CheckPlace,
  results: readonly CheckResult[],
  baseline: TaskBaseline,
): readonly CheckViolation[] {
  if (!spec.protectTests) return [];
  const mayShrink = new Set(
    everyNamed(nameChecks(spec.checks)).flatMap(({ name, check }) =>
      check.kind === "tests" && !check.noFewer ? [name] : [],
    ),
  );
  return withParts(results).flatMap(({ name, tests }) => {
    const before: TestCounts | undefined = baseline.tests[name];
    if (tests === undefined || before === undefined || mayShrink.has(name) || ran(tests) >= ran(before)) return [];
    const message = `${name}: ${ran(tests)} tests ran, ${ran(before)} before the task began`;
    return [{ kind: "fewer-tests", message }];
  });
}

/** The folder is gone, or it is not the one the task began in. */
async function workspaceFault({ folder }: CheckPlace, baseline: TaskBaseline): Promise<CheckViolation | undefined> {
  const fault = (what: string): CheckViolation => ({
    kind: "workspace-missing",
    path: folder,
    message: `the workspace ${folder} ${what}`,
  });
  const real = await realpath(folder).catch(() => undefined);
  if (real === undefined) return fault("does not exist any more");
  if (real !== baseline.folder) return fault(`leads to ${real} now, not to ${baseline.folder}, where the task began`);
  const stat = await lstat(real).catch(() => undefined);
  return stat?.isDirectory() === true ? undefined : fault("is no folder any more");
}

/** No check could be carried out, and each says so. */
function unjudged({ spec }: CheckPlace, message: string, violations: readonly CheckViolation[]): Verdict {
  const startedAt = Date.now();
  const results = nameChecks(spec.checks).map(({ name, check }): CheckResult => ({
    name,
    kind: check.kind,
    outcome: "error",
    message,
    startedAt,
    durationMs: 0,
  }));
  return { results, violations, passed: false };
}

function wholeResult(
  name: string,
  outcome: CheckResult["outcome"],
  { message, startedAt }: { readonly message: string; readonly startedAt: number },
): CheckResult {
  return { name, kind: "workspace", outcome, message, startedAt, durationMs: 0 };
}
