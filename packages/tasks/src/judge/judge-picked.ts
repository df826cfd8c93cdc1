/** All checks of a spec on one set of files: the beginning with what was picked of the work. No event is written here. */
import type { CheckResult, CheckViolation, EventOf, TaskBaseline } from "@heddle/protocol";
import { MAX_WORK_FILES } from "@heddle/protocol/tasks";
import { toText } from "@heddle/tools/raw-path";
import type { CheckOptions, RoomContents, TestCounts } from "../checks/check.ts";
import type { RoomCommands } from "../checks/commands.ts";
import { everyNamed, nameChecks } from "../checks/names.ts";
import { runAll, withParts } from "../checks/run-all.ts";
import type { Ran } from "../checks/run-check.ts";
import { ran } from "../checks/tests.ts";
import { runsCommands } from "./named-work.ts";
import { openCheckRoom } from "./open-check-room.ts";
import { isRepository, isSeenUnread, telling } from "./pick.ts";
import { settleFlips, type Earlier } from "./flips.ts";
import type { SetupDifference } from "./set-up.ts";
import { flagWeak } from "./weak.ts";

export interface JudgedRoom {
  /** In the order of the spec, each with what it rests on. */
  readonly results: readonly CheckResult[];
  readonly violations: readonly CheckViolation[];
  /** Every check passed and nothing was violated. */
  readonly passed: boolean;
  readonly ran: readonly Ran[];
  /** How the rooms were made; undefined: no check ran a command. */
  readonly kind: RoomCommands["kind"];
  readonly setup: SetupDifference;
}

export interface ToJudge {
  readonly baseline: TaskBaseline;
  readonly room: RoomContents;
  /** What the same checks found before on work of the same beginning. */
  readonly earlier?: readonly Earlier[];
  /** The spec does not say what is delivered, so that a command's result names also what it may only have looked for. */
  readonly isOpen?: boolean;
}

export async function judgePicked(
  checkOptions: CheckOptions,
  { baseline, room, earlier = [], isOpen = false }: ToJudge,
  roomKind: EventOf<"task.checking">["room"] = "delivered",
): Promise<JudgedRoom> {
  await using open = openCheckRoom(checkOptions, { baseline, room });
  const first = await runAll(checkOptions, open, roomKind);
  const settled = await settleFlips(checkOptions, { baseline, room, open, first, earlier });
  const results = settled.map((one, index) => {
    const check = checkOptions.spec.checks[index];
    if (check === undefined) return one.result;
    return flagWeak(resting(one, room, isOpen && runsCommands(check)), check, baseline);
  });
  const violations = fewerTests(checkOptions, results, baseline);
  const passed = violations.length === 0 && results.length > 0 && results.every(({ outcome }) => outcome === "passed");
  return { results, violations, passed, ran: settled, kind: open.kind, setup: open.setup };
}

/** With the files of the work that it read, git's own left out, and, where `looks`, those that it can tell from before without reading them. */
function resting({ result, reads }: Ran, { picked }: RoomContents, looks: boolean): CheckResult {
  if (picked.length === 0) return result;
  const rests = telling(picked).filter(
    (change) =>
      !isRepository(change) && (reads === undefined || reads.has(change.path) || (looks && isSeenUnread(change))),
  );
  return {
    ...result,
    restsOn: rests.slice(0, MAX_WORK_FILES).map(({ path }) => toText(path)),
    ...(rests.length > MAX_WORK_FILES ? { restsOnCount: rests.length } : {}),
    areReadsKnown: reads !== undefined,
  };
}

function fewerTests(
  { spec }: CheckOptions,
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
