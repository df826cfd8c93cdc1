/**
 * Threads have settings of their own, and input can wait for its turn. Events stay as they are; the projections are made
 * anew from them after the last step.
 */
export const settingsAndQueue = "";
