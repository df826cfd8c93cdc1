/**
 * Brings due work to a worker that is free. The projection of tasks is the truth; what a dispatch delivers is a hint that
 * is checked by the append that takes the task. So it may deliver late, twice or out of date, and never decides anything.
 */
import type { TicketName } from "@heddle/journal";
import type { TaskRecord } from "@heddle/protocol";

export interface Delivery {
  /** As it was read after the delivery. */
  readonly task: TaskRecord;
  /** Done with the append that takes the task; absent where the projection itself is the queue. */
  readonly ticket?: TicketName;
}

export interface Looking {
  readonly now: number;
  /** For those who only look: more than can begin, because some may not. */
  readonly limit: number;
  /** How many can begin: what is delivered to one worker is kept from others. */
  readonly room: number;
  /** Only these tasks, and what their schedules began. */
  readonly among?: readonly string[] | undefined;
  /** What the worker has; a task that needs more is another's. */
  readonly labels: readonly string[];
}

export interface Dispatch extends AsyncDisposable {
  /** What can begin now, best first. Waking is not its concern: events do that. */
  deliveries(looking: Looking): Promise<readonly Delivery[]>;
  /** It was not taken: to be delivered again at that time, or not for what has been seen. */
  later(delivery: Delivery, at: number | "never"): Promise<void>;
  /** Tasks whose tickets were delivered to one worker after the other, none of which lived to take the task. */
  dead(): Promise<readonly Delivery[]>;
  /** Sends tickets for due tasks that have none; returns how many. */
  rebuild(): Promise<number>;
}
