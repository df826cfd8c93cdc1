/** The goal of a thread, from its events, and as the model sees it. Pure. */
import { nextGoal, type StandingGoal, type StoredEvent } from "@heddle/protocol";

export function goalOf(history: readonly StoredEvent[]): StandingGoal | undefined {
  let standing: StandingGoal | undefined;
  for (const event of history) standing = nextGoal(standing, event);
  return standing;
}

/** The note that begins a turn which only the goal has started. */
export function goalText({ objective, tokenBudget, tokensUsed }: StandingGoal): string {
  const budget = tokenBudget === undefined ? "" : ` ${tokensUsed} of ${tokenBudget} tokens are used.`;
  return [
    // In marks, so that the model tells it from the words around it.
    `The user has set a goal for this thread:\n<objective>\n${objective}\n</objective>`,
    `Work for it now.${budget} When it is reached and you have checked that, call update_goal with complete; when only the user can help, call it with blocked and say why. When you end your turn before, you will be asked to continue.`,
  ].join("\n\n");
}
