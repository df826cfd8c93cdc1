/** What models took has tables. Events stay as they are; the projections are made anew after the last step. */
export const usage = "";
