/**
 * What a pass is worth. A check that passed before any work was done says nothing about the work: it is vacuous, or, where
 * it demands that something stays as it was, a guard. One that comes out differently on the same files is flaky, and nothing
 * is verified beside it: whatever else passed, it failed on these files too. A verdict needs a ground: one pass that is none
 * of these.
 */
import type { CheckResult, TaskBaseline } from "@heddle/protocol";
import type { TaskCheck } from "@heddle/protocol/tasks";
import { listed } from "../checks/shown.ts";
import { isGuardKind } from "./named-work.ts";
import { reasonOf, type Reason } from "./pick.ts";

export function flagWeak(result: CheckResult, check: TaskCheck, { passed }: TaskBaseline): CheckResult {
  const parts = result.parts?.map((part) =>
    part.outcome === "passed" && passed.includes(part.name) ? { ...part, isVacuous: true } : part,
  );
  const whole = { ...result, ...(parts === undefined ? {} : { parts }) };
  if (result.outcome !== "passed" || !passed.includes(result.name)) return whole;
  return isGuardKind(check) ? { ...whole, isGuard: true } : { ...whole, isVacuous: true };
}

function isGround({ outcome, isVacuous, isGuard }: CheckResult): boolean {
  return outcome === "passed" && isVacuous !== true && isGuard !== true;
}

/** Why passes are not enough; undefined when one of them is a ground and none is flaky. */
export function weakness(results: readonly CheckResult[]): Reason | undefined {
  const flaky = results.filter(({ isFlaky }) => isFlaky === true).map(({ name }) => name);
  if (flaky.length > 0) {
    const message = `flaky checks prove nothing about the work: ${listed(flaky)} passed and failed on the same files`;
    return reasonOf("flaky", message);
  }
  if (results.some(isGround)) return undefined;
  const message =
    "every check passed before the task began as well, so none of them proves anything about the work; " +
    "add a check that fails without it";
  return reasonOf("vacuous", message);
}

/** Nothing speaks against the work but checks that passed on the same files before; undefined when something else does. */
export function flakyFailure(results: readonly CheckResult[]): Reason | undefined {
  const failing = results.filter(({ outcome }) => outcome !== "passed");
  if (failing.length === 0 || failing.some(({ isFlaky }) => isFlaky !== true)) return undefined;
  const names = listed(failing.map(({ name }) => name));
  const message = `only flaky checks fail for this work: ${names} came out differently on the same files before`;
  return reasonOf("flaky", message);
}

/** Said where nothing has changed and every check passes. */
export function nothingDone(): CheckResult {
  const message = "every check passed before the task began, and nothing has changed since";
  return {
    name: "work was done",
    kind: "workspace",
    outcome: "failed",
    message,
    startedAt: Date.now(),
    durationMs: 0,
  };
}
