/** Tasks and notifications have tables. Events stay as they are; the projections are made anew after the last step. */
export const tasks = "";
