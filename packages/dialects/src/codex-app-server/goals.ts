/** A goal as the original shows it. Times in seconds. */
import type { StandingGoal } from "@heddle/protocol";
import type { CodexNotification } from "./shapes.ts";
import { seconds } from "./turns.ts";

/** `turnId`: the turn that worked for it; null: a user changed it. */
export function goalNotice(
  threadId: string,
  goal: StandingGoal | undefined,
  turnId: string | null = null,
): CodexNotification {
  if (goal === undefined) return { method: "thread/goal/cleared", params: { threadId } };
  return { method: "thread/goal/updated", params: { threadId, turnId, goal: codexGoal(threadId, goal) } };
}

export function codexGoal(threadId: string, goal: StandingGoal): Readonly<Record<string, unknown>> {
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
