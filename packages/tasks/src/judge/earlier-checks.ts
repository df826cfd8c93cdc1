/** What the checks of a task found in its earlier rounds, for whoever judges it once more. */
import type { StoredEvent, TaskEventBody } from "@heddle/protocol";
import type { Earlier } from "./flips.ts";

/** The last ones say enough: a check that flips is run again anyway. */
const MAX_ROUNDS = 20;

/** `base`: the beginning it is judged on, by its hash; what was judged on another cannot be compared. */
export function earlierChecks(log: readonly StoredEvent<TaskEventBody>[], base: string): readonly Earlier[] {
  return log
    .flatMap(({ body }) => (body.type === "task.checked" && body.work?.base === base ? [body] : []))
    .flatMap(({ results, work }) => (work === undefined ? [] : [{ results, work }]))
    .slice(-MAX_ROUNDS);
}
