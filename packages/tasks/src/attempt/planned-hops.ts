/** Where a task stands in the hops of its spec. */
import type { TaskRecord } from "@heddle/protocol";
import type { TaskHop } from "@heddle/protocol/tasks";

/** undefined: it has taken all of them. */
export function nextHop({ hops, spec }: TaskRecord): (TaskHop & { readonly index: number }) | undefined {
  const index = hops?.taken ?? 0;
  const next = spec.hops?.[index];
  return next === undefined ? undefined : { ...next, index };
}

/** The last one that it has taken. */
export function lastHop({ hops, spec }: TaskRecord): TaskHop | undefined {
  return spec.hops?.[(hops?.taken ?? 0) - 1];
}

/** The envelope of its turns, where it is no longer that of the spec: what else happened in the thread changes nothing. */
export function envelopeNow(task: TaskRecord): { readonly envelope?: string } {
  const last = lastHop(task);
  return last === undefined ? {} : { envelope: last.to };
}
