import { z } from "zod";

/** Where the record is kept, when not in the home. */
export const StoreTable = z.strictObject({
  /** `postgres://user@host/database?schema=name`. */
  url: z
    .string()
    .max(4096)
    .regex(/^postgres(?:ql)?:\/\//, "must be postgres://user@host/database?schema=name")
    .optional(),
});
