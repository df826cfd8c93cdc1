/** What a task has used: time, and the tokens and cost of what used a model. */
import type { EventOf } from "../events/events.ts";
import type { TaskRecord, TaskSpent } from "./task-record.ts";

type Asked = Pick<NonNullable<EventOf<"task.checked">["opinion"]>, "usage" | "costUsd">;

export const NO_SPENT: TaskSpent = { timeMs: 0, turns: 0, tokens: 0, costUsd: 0, isCostPartial: false, nudges: 0 };

export function spentOf({ spent }: TaskRecord, timeMs: number, { usage, costUsd }: Asked = {}): TaskSpent {
  return {
    ...spent,
    timeMs: spent.timeMs + timeMs,
    tokens: spent.tokens + (usage === undefined ? 0 : usage.inputTokens + usage.outputTokens),
    costUsd: spent.costUsd + (costUsd ?? 0),
    isCostPartial: spent.isCostPartial || (usage !== undefined && costUsd === undefined),
  };
}
