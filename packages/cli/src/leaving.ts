/** How a process that others count on leaves: told to drain by a signal or by another process, or fenced. */
import type { Member } from "@heddle/agent";
import { counted, EXIT } from "@heddle/protocol";
import type { Doors } from "@heddle/runtime/doors";
import type { Harness } from "@heddle/tasks";
import { wholeNumber, type OptionSpec, type ParsedArgs } from "./args.ts";
import { say } from "./print/screen.ts";
import type { Stop } from "./stop.ts";
import { untilAborted } from "./until-end.ts";

/** Below the minute that most supervisors leave a process. */
const GRACE_SECONDS = 40;
const MAX_GRACE_SECONDS = 86_400;

export const GRACE_OPTION: OptionSpec = {
  name: "grace",
  value: "SECONDS",
  help: `How long running turns and tasks may continue after SIGTERM; default: ${GRACE_SECONDS}`,
};

export function graceMsOf(args: ParsedArgs): number {
  return 1_000 * (wholeNumber(args, "grace", { max: MAX_GRACE_SECONDS, min: 0 }) ?? GRACE_SECONDS);
}

export interface Leaving {
  readonly stop: Stop;
  /** How long turns and tasks may continue after a signal. */
  readonly graceMs: number;
  readonly member: Member | undefined;
  /** Absent: it runs no tasks. */
  readonly harness: Harness | undefined;
  /** Absent: it has none. */
  readonly doors?: Pick<Doors, "drain">;
  readonly log?: (line: string) => void;
}

/** Returns when everything is to be closed. */
export async function untilToLeave({ stop, graceMs, member, harness, doors, log = say }: Leaving): Promise<void> {
  const signals = member === undefined ? [] : [member.fenced, member.drained];
  await untilAborted(AbortSignal.any([stop.signal, ...signals]));
  const isInterrupted = stop.exitCode !== undefined && stop.exitCode !== EXIT.terminated;
  if ((harness ?? doors) === undefined || member?.fenced.aborted === true || isInterrupted) return;
  const running = harness === undefined || harness.running === 0 ? "" : `, ${counted(harness.running, "task")} to end`;
  log(`${member?.name ?? "this process"} drains: it takes nothing new${running}`);
  // Told by another process it has all the time that its tasks take; a signal sets a limit to that too.
  const limit = new AbortController();
  const onStop = (): void => void setTimeout(() => limit.abort(), graceMs).unref();
  if (stop.signal.aborted) onStop();
  else stop.signal.addEventListener("abort", onStop, { once: true });
  const fenced = member === undefined ? [] : [member.fenced];
  const over = AbortSignal.any([limit.signal, ...fenced]);
  await Promise.race([Promise.all([harness?.drain(), doors?.drain(over)]), untilAborted(over)]);
}
