import path from "node:path";
import { z } from "zod";

const limit = { cost_usd: z.number().positive().optional(), tokens: z.int().positive().optional() };
const folder = z.string().refine((name) => path.isAbsolute(name), "must be an absolute path");

/** What may be used in a day, in UTC, by all threads of the home; then no turn begins before the next. */
export const DayLimitsTable = z.strictObject({
  ...limit,
  turns: z.int().positive().optional(),
  /** By folder: what its threads may use of it. */
  workspaces: z.record(folder, z.strictObject(limit)).optional(),
});
