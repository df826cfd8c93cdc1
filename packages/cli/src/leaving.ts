/** How a member of a shared store leaves it: told to drain by a signal or by another process, or fenced. */
import type { Member } from "@heddle/agent";
import { counted, EXIT } from "@heddle/protocol";
import type { Harness } from "@heddle/tasks";
import { say } from "./print/screen.ts";
import type { Stop } from "./stop.ts";
import { untilAborted } from "./until-end.ts";

/** Below the minute that most supervisors leave a process. */
export const GRACE_SECONDS = 40;

export interface Leaving {
  readonly stop: Stop;
  /** How long tasks may continue after a signal. */
  readonly graceMs: number;
  readonly member: Member | undefined;
  /** Absent: it runs no tasks. */
  readonly harness: Harness | undefined;
}

/** Returns when everything is to be closed. */
export async function untilToLeave({ stop, graceMs, member, harness }: Leaving): Promise<void> {
  const signals = member === undefined ? [] : [member.fenced, member.drained];
  await untilAborted(AbortSignal.any([stop.signal, ...signals]));
  const isInterrupted = stop.exitCode !== undefined && stop.exitCode !== EXIT.terminated;
  if (harness === undefined || member?.fenced.aborted === true || isInterrupted) return;
  const running = harness.running === 0 ? "" : `, ${counted(harness.running, "task")} to end`;
  say(`${member?.name ?? "this process"} drains: it takes nothing new${running}`);
  // Told by another process it has all the time that its tasks take; a signal sets a limit to that too.
  const limit = new AbortController();
  const onStop = (): void => void setTimeout(() => limit.abort(), graceMs).unref();
  if (stop.signal.aborted) onStop();
  else stop.signal.addEventListener("abort", onStop, { once: true });
  const fenced = member === undefined ? [] : [member.fenced];
  await Promise.race([harness.drain(), untilAborted(AbortSignal.any([limit.signal, ...fenced]))]);
}
