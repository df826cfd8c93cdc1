/**
 * The next hop of a spec, between two turns of an attempt. The thread's own record decides whether it was taken, so that a
 * crash between the hop and the task's event takes it once.
 *
 *   hop-due ─▶ hopped ─▶ prompt in the next envelope
 *      └──▶ refused: a guard ─▶ prompt with what was found · a user has to allow it ─▶ paused · anything else ─▶ failed
 */
import { isHeddleError, type Failure } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { TaskHop } from "@heddle/protocol/tasks";
import { noteEnd, type Round } from "./attempt.ts";
import type { Step } from "./past.ts";
import { nextHop } from "./planned-hops.ts";
import { endProcesses } from "./prepare.ts";
import { settleFailure } from "./retry.ts";

/** Another client may begin a turn in the thread first; more often than this is a fault. */
const MAX_TRIES = 10;

export async function takeHop(round: Round): Promise<Step | undefined> {
  const { context, hold, prepared } = round;
  const { attempt } = hold.task;
  const planned = nextHop(hold.task);
  if (planned === undefined) throw new TypeError(`${hold.task.id} has no hops left`);
  const { index, to } = planned;
  const failure = await hop(round, planned);
  if (failure === undefined) {
    failpoint("task.after-hop");
    await hold.append({ type: "task.hopped", v: 1, attempt, index, to });
    return { kind: "prompt", why: "hopped" };
  }
  const refused = { type: "task.hop-refused", v: 1, attempt, index, to, failure } as const;
  if (failure.code === "hop.guard-failed") {
    await hold.append(refused);
    return { kind: "prompt", why: "hop-refused" };
  }
  await noteEnd(round);
  if (failure.code === "hop.approval-denied") {
    const hopIt = `heddle threads hop ${prepared.threadId} ${to}`;
    const message = `${failure.message}; if it may go there: ${hopIt}, then heddle task resume ${hold.task.id}`;
    await hold.append(refused, { type: "task.paused", v: 1, cause: "question", message });
  } else await hold.append(refused, settleFailure(hold.task, failure, context.now()));
  return undefined;
}

/** undefined: the thread is there. */
async function hop(
  { context, hold, prepared, signal }: Round,
  { to, reason, carry }: TaskHop,
): Promise<Failure | undefined> {
  const { heddle } = context;
  const { threadId } = prepared;
  for (let tries = 1; ; tries += 1) {
    await endProcesses(context, hold, prepared, signal);
    const row = await heddle.journal.threads.envelope(threadId);
    if (row !== undefined && !row.isLeft && row.envelope.id === to) return undefined;
    try {
      const carried = carry === undefined ? {} : { carry };
      const staysInSandbox = hold.task.spec.sandbox !== "danger-full-access";
      await heddle.as("system").hopThread({ threadId, to, reason, ...carried, channel: "task", staysInSandbox });
      return undefined;
    } catch (error) {
      if (!isHeddleError(error) || !isRefusal(error.code)) throw error;
      if (error.code !== "hop.busy" || tries === MAX_TRIES) return { code: error.code, message: error.message };
    }
  }
}

function isRefusal(code: string): boolean {
  return code.startsWith("hop.") || code === "ceiling.exceeded" || code === "door.forbidden";
}
