/** The queue of one store by itself: the projection of tasks, asked anew each time. */
import type { Journal } from "@heddle/journal";
import type { TaskRecord } from "@heddle/protocol";
import type { Delivery, Dispatch } from "./dispatch.ts";

export function journalDispatch({ tasks }: Pick<Journal, "tasks">): Dispatch {
  return {
    deliveries: async ({ now, limit, among, labels }) =>
      (await tasks.due(now, { limit, among, labels })).map(asDelivery),
    // What was not taken is still due.
    later: () => Promise.resolve(),
    dead: () => Promise.resolve([]),
    rebuild: () => Promise.resolve(0),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function asDelivery(task: TaskRecord): Delivery {
  return { task };
}
