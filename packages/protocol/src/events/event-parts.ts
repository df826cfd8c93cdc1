/** Parts that events of more than one kind are made of. */
import { z } from "zod";

/** The process that holds a turn or a task, so that another one can tell whether it is alive without trusting the clock. */
export const Holder = z.object({
  /** The host it runs on. Absent in older events: then it is the host that the store is on. */
  host: z.string().optional(),
  pid: z.number().int(),
  /** Start time of the process in kernel ticks since boot; tells a reused pid from the old one. */
  startTicks: z.string(),
  bootId: z.string(),
  /** Pids mean something only inside one pid namespace. */
  pidNamespace: z.string(),
});
export type Holder = z.infer<typeof Holder>;

export const Failure = z.object({
  code: z.string(),
  message: z.string(),
  details: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
});
export type Failure = z.infer<typeof Failure>;

/** The schema of one type of stored event, in its first version. */
export function event<T extends string, S extends z.ZodRawShape>(type: T, shape: S) {
  return z.object({ type: z.literal(type), v: z.literal(1), ...shape });
}

/** Of an event that belongs to a turn. */
export function turnEvent<T extends string, S extends z.ZodRawShape>(type: T, shape: S) {
  return event(type, { turnId: z.string(), ...shape });
}
