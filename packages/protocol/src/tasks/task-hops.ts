/** Where a task stands in the hops of its spec, which are taken one after the other. */
import type { EventOf } from "../events/events.ts";
import type { TaskRecord } from "./task-record.ts";

export type HopOfTask = EventOf<"task.hop-due" | "task.hopped" | "task.hop-refused">;

/** undefined: it is not the next one. */
export function afterHop(task: TaskRecord, body: HopOfTask): TaskRecord | undefined {
  const taken = task.hops?.taken ?? 0;
  if (body.index !== taken || task.spec.hops?.[taken]?.to !== body.to) return undefined;
  switch (body.type) {
    case "task.hop-due":
      return task;
    case "task.hopped":
      return { ...task, hops: { taken: taken + 1 } };
    case "task.hop-refused":
      return { ...task, hops: { taken, refused: body.failure.message } };
  }
}

/** All of them; the checks run after the last. */
export function hasHopped({ hops, spec }: TaskRecord): boolean {
  return (hops?.taken ?? 0) >= (spec.hops?.length ?? 0);
}

/** Another thread is in none of the envelopes that the hops led to. */
export function withHopsOf(task: TaskRecord, threadId: string): TaskRecord {
  return threadId === task.threadId ? task : withoutHops(task);
}

/** From the first envelope on. */
export function withoutHops({ hops: _, ...task }: TaskRecord): TaskRecord {
  return task;
}
