/** A goal as the original shows it. Times in seconds. */
import type { Goal } from "@heddle/protocol";
import { seconds } from "./turns.ts";

export interface GoalFacts extends Goal {
  readonly tokensUsed: number;
  readonly timeUsedMs: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export function codexGoal(threadId: string, goal: GoalFacts): Readonly<Record<string, unknown>> {
  return {
    threadId,
    objective: goal.objective,
    status: goal.status,
    tokenBudget: goal.tokenBudget ?? null,
    tokensUsed: goal.tokensUsed,
    timeUsedSeconds: seconds(goal.timeUsedMs),
    createdAt: seconds(goal.createdAt),
    updatedAt: seconds(goal.updatedAt),
  };
}
