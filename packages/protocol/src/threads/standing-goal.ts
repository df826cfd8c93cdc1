/** The goal of a thread from its events, with the usage of the turns since it was set. Pure. */
import type { StoredEvent } from "../events/events.ts";
import type { Goal } from "./thread-facts.ts";
import type { Usage } from "./model-output.ts";

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
    // A goal without a budget has none, even where there was one before.
    const budget = { tokenBudget: undefined };
    return body.goal === null ? undefined : { ...begun, ...kept, ...budget, ...body.goal, updatedAt: at };
  }
  if (body.type !== "turn.completed" || standing === undefined) return standing;
  return worked(standing, body);
}

/** After turns that used this. */
export function worked(
  goal: StandingGoal,
  { usage, durationMs }: { readonly usage: Usage; readonly durationMs: number },
): StandingGoal {
  const { inputTokens, cachedInputTokens, outputTokens } = usage;
  // Cached input costs next to nothing; a budget is for what is new.
  const tokensUsed = goal.tokensUsed + inputTokens - cachedInputTokens + outputTokens;
  return { ...goal, tokensUsed, timeUsedMs: goal.timeUsedMs + durationMs };
}
