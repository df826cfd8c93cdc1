/**
 * The stream of a process that takes work of a shared store, from its start to its end. Joining it is taking its lease;
 * fencing it ends that lease and all others of the process, in one append.
 */
import { z } from "zod";
import { event, Holder } from "./event-parts.ts";
import { taskEvents } from "./task-events.ts";

/** `server`: doors only. `worker`: tasks and turns. */
export const WorkerRole = z.enum(["server", "worker", "both"]);
export type WorkerRole = z.infer<typeof WorkerRole>;

const workerEvents = [
  event("worker.joined", {
    name: z.string(),
    role: WorkerRole,
    /** What it has that a task may need. */
    labels: z.array(z.string()),
    concurrency: z.int(),
    /** Of Heddle. */
    version: z.string(),
    holder: Holder,
  }),
  /** It takes nothing new, and leaves when what it runs has ended. */
  event("worker.drained", { reason: z.string() }),
  /** Nothing is recorded under its leases after this. */
  event("worker.fenced", { holder: Holder, reason: z.string() }),
  event("worker.left", { reason: z.string() }),
] as const;

/** Of tasks, and of those who carry them out. */
export const workEvents = [...taskEvents, ...workerEvents] as const;
