/** All checks of a spec, in its order, each in rooms of its own. */
import { failpoint } from "@heddle/protocol/failpoints";
import type { CheckResult, EventOf } from "@heddle/protocol";
import type { CheckOptions } from "./check.ts";
import { nameChecks } from "./names.ts";
import { runCheck, type CheckRoom, type Ran } from "./run-check.ts";

export async function runAll(
  { spec, signal, onCheck }: CheckOptions,
  room: CheckRoom,
  roomKind: EventOf<"task.checking">["room"],
): Promise<readonly Ran[]> {
  const all: Ran[] = [];
  for (const named of nameChecks(spec.checks)) {
    signal.throwIfAborted();
    await onCheck?.(named.name, roomKind);
    all.push(await runCheck(named, room));
    failpoint("task.between-checks");
  }
  return all;
}

export function withParts(results: readonly CheckResult[]): readonly CheckResult[] {
  return results.flatMap((result) => [result, ...(result.parts ?? [])]);
}
