/** The goal of a thread as its events say, and what the model reads of it. Pure. */
import { nextGoal, type StandingGoal, type StoredEvent } from "@heddle/protocol";

export function goalOf(history: readonly StoredEvent[]): StandingGoal | undefined {
  let standing: StandingGoal | undefined;
  for (const event of history) standing = nextGoal(standing, event);
  return standing;
}

/** What the model is told at the beginning of a turn that nobody asked for but the goal. */
export function goalText({ objective, tokenBudget, tokensUsed }: StandingGoal): string {
  const budget = tokenBudget === undefined ? "" : ` ${tokensUsed} of ${tokenBudget} tokens are used.`;
  return [
    `The user has set a goal for this thread:\n${objective}`,
    `Work for it now.${budget} When it is reached and you have checked that, call update_goal with complete; when only the user can help, call it with blocked and say why. When you end your turn before, you will be asked to continue.`,
  ].join("\n\n");
}
