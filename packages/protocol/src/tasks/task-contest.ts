/**
 * Where a contest stands:
 *
 *   taken ─▶ opened ─▶ waits for its contestants ─▶ taken ─▶ picked ─▶ claimed ─▶ checked ─▶ ended + verified
 *                            ▲                        │        ▲ rejected on the contest's own judgement: the next one
 *                            └────────────────────────┘        └──────────┘
 *                                                     └─▶ nobody: ended + failed
 */
import type { Contest } from "./contest-shapes.ts";
import type { EventOf } from "../events/events.ts";
import type { TaskRecord } from "./task-record.ts";

export type ContestOfTask = EventOf<"task.contest-opened" | "task.contest-picked" | "task.contest-ended">;

/** undefined: it does not fit. */
export function afterContest(task: TaskRecord, body: ContestOfTask): TaskRecord | undefined {
  const { contest, spec } = task;
  if (task.holder === undefined || spec.agents === undefined) return undefined;
  switch (body.type) {
    case "task.contest-opened": {
      const { generation, contestants } = body;
      if (contest?.hasEnded === false || generation !== (contest?.generation ?? 0) + 1) return undefined;
      return { ...task, contest: { generation, contestants, refused: [], hasEnded: false } };
    }
    case "task.contest-picked": {
      const { number, reason, rows } = body;
      const isThere = contest?.contestants.some((one) => one.number === number) === true;
      if (!isThere || contest.hasEnded || contest.picked !== undefined || contest.refused.includes(number))
        return undefined;
      // What is judged is new work of a round of its own.
      const round = task.round + 1;
      return { ...task, state: "running", round, contest: { ...contest, picked: { number, reason }, rows } };
    }
    case "task.contest-ended":
      if (contest?.hasEnded !== false || contest.picked?.number !== body.number) return undefined;
      return { ...task, contest: { ...contest, rows: body.rows, hasEnded: true } };
  }
}

/** It waits for its contestants, or may. */
export function isOpenContest({ contest }: TaskRecord): boolean {
  return contest?.hasEnded === false && contest.picked === undefined;
}

/** The picked work did not pass when it was judged for the contest. */
export function withRefusal(task: TaskRecord): TaskRecord {
  const { contest } = task;
  if (contest?.picked === undefined) return task;
  const { picked, ...rest } = contest;
  return { ...task, contest: { ...rest, refused: [...contest.refused, picked.number] } };
}

/** The user has it tried again: with new contestants. */
export function closedContest({ contest }: TaskRecord): { readonly contest?: Contest } {
  return contest === undefined ? {} : { contest: { ...contest, hasEnded: true } };
}
