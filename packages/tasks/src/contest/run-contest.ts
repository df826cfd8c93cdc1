/**
 * A contest that a worker has taken, from wherever it stands. All state is in events, and each step may be done twice, so
 * that after a crash the next worker continues at the same step: no contestant is lost, and none is made twice.
 *
 *   opened (stored) ─▶ contestants (each by its key) ─▶ waits, without a worker, until one of them changes
 *   picked (stored) ─▶ the others cancelled ─▶ its work adopted ─▶ judged for the contest ─▶ brought back, ended
 *        ▲ refused                                                      │
 *        └──────────────────────────────────────────────────────────────┘
 */
import type { EventOf, TaskEventBody, TaskRecord } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Contestant } from "@heddle/protocol/tasks";
import { checkAndForget, type Round } from "../attempt/attempt.ts";
import { outOfBudget } from "../attempt/endings.ts";
import { checkOptionsFor } from "../attempt/work.ts";
import { describe, usedUp } from "../attempt/budget.ts";
import { existing } from "../queue/change.ts";
import { adoptWork } from "./adopt-work.ts";
import { addContestants, contestantsOf } from "./contestants.ts";
import { decide, type ContestAct, type Measured } from "./decide.ts";
import { followContest, wakeContest } from "./follow-contest.ts";
import { measure } from "./measure.ts";
import { contestCase, contestRows } from "./standings.ts";

/** Resolves when the contest is no longer this worker's. */
export async function runContest(round: Round): Promise<void> {
  let isOver = false;
  while (!isOver) {
    round.signal.throwIfAborted();
    round.watch[Symbol.dispose]();
    const { contest } = round.hold.task;
    if (contest === undefined || contest.hasEnded) await open(round);
    else isOver = contest.picked === undefined ? await choose(round) : await deliver(round, contest.picked.number);
  }
}

async function open({ hold }: Round): Promise<void> {
  const { attempt, contest } = hold.task;
  const generation = (contest?.generation ?? 0) + 1;
  const contestants = contestantsOf(hold.task, generation);
  await hold.append({ type: "task.contest-opened", v: 1, attempt, generation, contestants });
  failpoint("contest.after-opened");
}

/** true: it waits, or is over. */
async function choose(round: Round): Promise<boolean> {
  const { context, hold } = round;
  const { journal } = context.heddle;
  await addContestants(journal, hold.task, context.now());
  failpoint("contest.after-contestants");
  // Some may have been paused with the contest, which continues now.
  await followContest(journal, hold.task.id);
  const act = await nextAct(round);
  const { attempt, id } = hold.task;
  switch (act.kind) {
    case "wait":
      await hold.append({ type: "task.waited", v: 1, cause: "contest", message: act.message });
      // A contestant may have ended meanwhile.
      await wakeContest(journal, id);
      return true;
    case "pick": {
      const { number, reason, rows } = act;
      await hold.append({ type: "task.contest-picked", v: 1, attempt, number, reason, rows: [...rows] });
      failpoint("contest.after-pick");
      return false;
    }
    case "nobody": {
      const failure = { code: "task.rejected", message: act.reason };
      await hold.append(
        { type: "task.contest-ended", v: 1, attempt, reason: act.reason, rows: [...act.rows] },
        { type: "task.failed", v: 1, attempt, class: "rejected", failure },
      );
      // Those that stopped by themselves may not be resumed into nothing.
      await followContest(journal, id);
      return true;
    }
  }
}

type FinalAct = Exclude<ContestAct, { readonly kind: "measure" }>;

/** What is not measured yet is measured, and then it is decided again. */
async function nextAct(round: Round): Promise<FinalAct> {
  const { context, hold, prepared, signal } = round;
  const { journal } = context.heddle;
  const measures = new Map<number, Measured>();
  for (;;) {
    signal.throwIfAborted();
    const act = decide(await contestCase(journal, hold.task, measures));
    if (act.kind !== "measure") return act;
    const checkOptions = checkOptionsFor({ context, hold, folder: prepared.folder, signal });
    const options = { journal, checkOptions, contest: hold.task, baseline: prepared.baseline };
    for (const number of act.numbers)
      measures.set(number, await measure(options, await existing(journal, contestantIn(hold.task, number).taskId)));
  }
}

/** The picked work, judged and brought back as any task's is. false: it was refused, and another one may be picked. */
async function deliver(round: Round, number: number): Promise<boolean> {
  const { context, hold, prepared, signal } = round;
  const { journal } = context.heddle;
  await followContest(journal, hold.task.id);
  failpoint("contest.after-cancel");
  const winner = await existing(journal, contestantIn(hold.task, number).taskId);
  const { baseline } = prepared;
  await adoptWork({ home: context.home, contest: hold.task, winner, baseline, signal });
  failpoint("contest.after-adopt");
  const reached = usedUp(hold.task);
  if (reached !== undefined) {
    await hold.append(outOfBudget(hold, describe(reached)));
    return true;
  }
  const summary = winner.claim?.summary ?? "";
  const next = await checkAndForget(round, { by: "contest", summary }, () => endOf(round));
  return next === undefined;
}

/** Stored with the verdict: what the contest came to, with the cost of all. */
async function endOf({ context, hold, signal }: Round): Promise<readonly TaskEventBody[]> {
  const { journal } = context.heddle;
  const { attempt, contest } = hold.task;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(COUNT_MS)]);
  await Promise.all((contest?.contestants ?? []).map(({ taskId }) => counted(context, taskId, limit)));
  signal.throwIfAborted();
  const { number, reason } = contest?.picked ?? { reason: "" };
  const ended: EventOf<"task.contest-ended"> = {
    type: "task.contest-ended",
    v: 1,
    attempt,
    reason,
    rows: [...(await contestRows(journal, hold.task))],
    ...(number === undefined ? {} : { number }),
  };
  return [ended];
}

/** For the turn of a cancelled contestant to be counted. */
const COUNT_MS = 10_000;

/** Its last turn has been counted. One whose worker has died is not, and the record says that it costs more. */
async function counted({ heddle, feed }: Round["context"], taskId: string, signal: AbortSignal): Promise<void> {
  const task = await heddle.journal.tasks.get(taskId);
  if (task?.openPrompt === undefined) return;
  for await (const { body } of feed.follow(taskId, { after: task.version, signal }))
    if (body.type === "task.turn-ended") return;
}

function contestantIn({ id, contest }: TaskRecord, number: number): Contestant {
  const found = contest?.contestants.find((one) => one.number === number);
  if (found === undefined) throw new TypeError(`${id} has no contestant ${number}`);
  return found;
}
