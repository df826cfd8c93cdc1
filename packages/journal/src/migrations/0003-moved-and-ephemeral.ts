/**
 * Threads can be moved to another folder, and those that are to be deleted with their run are known as such. Events stay as
 * they are; the projections are made anew from them after the last step.
 */
export const movedAndEphemeral = "";
