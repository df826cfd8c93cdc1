/** The verbs that change a task which is there, for its help and for what carries them out. */
export const CHANGES = ["pause", "resume", "cancel", "retry", "relieve", "complete", "archive", "delete"] as const;
export type Change = (typeof CHANGES)[number];
