/** Stalls of a task: turns that make no progress, one episode each. */
import { defined } from "../defined.ts";
import type { EventOf } from "../events/events.ts";
import type { TaskRecord } from "./task-record.ts";

type StallEvent = EventOf<"task.stalled" | "task.recovered" | "task.stall-acted">;

/** undefined: it does not fit the task. */
export function afterStall(task: TaskRecord, body: StallEvent, at: number): TaskRecord | undefined {
  if (task.holder === undefined) return undefined;
  const open = task.stall?.isOpen === true ? task.stall : undefined;
  switch (body.type) {
    case "task.stalled": {
      if (open !== undefined || body.episode !== (task.stall?.episode ?? 0) + 1) return undefined;
      const { episode, message, culprits, quietMs, itemId } = body;
      const stall = { episode, isOpen: true, since: at, quietMs, ...defined({ itemId }), message, culprits };
      return { ...task, state: "stalled", stall };
    }
    case "task.recovered":
      if (open?.episode !== body.episode) return undefined;
      return { ...task, state: "running", stall: { ...open, isOpen: false } };
    case "task.stall-acted":
      if (task.stall?.episode !== body.episode) return undefined;
      return { ...task, stall: { ...task.stall, action: body.action } };
  }
}

export function closedStall({ stall }: TaskRecord): Pick<TaskRecord, "stall"> {
  return stall === undefined ? {} : { stall: { ...stall, isOpen: false } };
}
