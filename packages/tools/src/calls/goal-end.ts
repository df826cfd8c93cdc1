/** How an agent may end the goal it works for, and who keeps that. */
export type GoalEndStatus = "complete" | "blocked";

/** Durable when it resolves; throws when there is no such goal any more. */
export type GoalEnd = (status: GoalEndStatus) => Promise<void>;
