/** The goal of a thread as its events tell it, with what the turns since it was set have taken. Pure. */
import type { StoredEvent } from "./events.ts";
import type { Goal } from "./thread-facts.ts";

export interface StandingGoal extends Goal {
  readonly tokensUsed: number;
  readonly timeUsedMs: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** undefined: there is none. */
export function nextGoal(standing: StandingGoal | undefined, { body, at }: StoredEvent): StandingGoal | undefined {
  if (body.type === "thread.goal-changed") {
    // Another objective is another goal.
    const kept = standing?.objective === body.goal?.objective ? standing : undefined;
    const begun = { tokensUsed: 0, timeUsedMs: 0, createdAt: at };
    return body.goal === null ? undefined : { ...begun, ...kept, ...withBudget(body.goal), updatedAt: at };
  }
  if (body.type !== "turn.completed" || standing === undefined) return standing;
  const { inputTokens, cachedInputTokens, outputTokens } = body.usage;
  // What was read again costs next to nothing; a budget is for what is new.
  const tokensUsed = standing.tokensUsed + inputTokens - cachedInputTokens + outputTokens;
  return { ...standing, tokensUsed, timeUsedMs: standing.timeUsedMs + body.durationMs };
}

/** Absent in the event means that there is none, also where there was one before. */
function withBudget(goal: Goal): Goal {
  return { tokenBudget: undefined, ...goal };
}
