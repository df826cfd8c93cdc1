/**
 * Threads have a name, a preview, the state of their last turn, the thread they were forked from, and an end. Events stay as
 * they are; the projections are made anew from them after the last step.
 */
export const threads = "";
