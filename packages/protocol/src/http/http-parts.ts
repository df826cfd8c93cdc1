/** Parts that the HTTP shapes of threads, tasks and work share. */
import { z } from "zod";
import { isUuid } from "../events/ids.ts";

export const time = z.number().int().describe("Milliseconds since 1970");
export const Id = z.string().min(1).max(200);
export const Folder = z.string().min(1).max(4096);

export const wholeNumber = (name: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, `${name} is a whole number`)
    .transform(Number);
export const flag = z.enum(["true", "false"]).transform((word) => word === "true");

export const PageQuery = z.strictObject({
  cursor: z.string().max(500).optional().describe("`nextCursor` of the page before"),
  limit: wholeNumber("limit").optional().describe("1 to 100; 25 when absent"),
});
export const page = <T extends z.ZodType>(member: T) =>
  z.object({ data: z.array(member), nextCursor: z.string().nullable().describe("null: there are no more") });
/** What follows an event or an item by its number. */
export const AfterQuery = z.strictObject({
  after: wholeNumber("after").optional().describe("`nextAfter` of the page before"),
  limit: wholeNumber("limit").optional(),
});
export const pageAfter = <T extends z.ZodType>(member: T) =>
  z.object({
    data: z.array(member),
    nextAfter: z.number().int().nullable().describe("null: there are no more now"),
  });

export const ThreadParams = z.strictObject({
  threadId: z.string().refine(isUuid, "a thread's id is a UUID").describe("A thread's id"),
});
