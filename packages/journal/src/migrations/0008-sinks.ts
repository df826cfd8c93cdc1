/** Sinks have a table. Events stay as they are; the projections are made anew after the last step. */
export const sinks = "";
