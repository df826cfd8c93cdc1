/**
 * Threads know where their work belongs. Events stay as they are; the projections are made anew from them after the last
 * step.
 */
export const gitInfo = "";
