/** What the checks of a task found in its earlier rounds, for judging it again. */
import type { Journal } from "@heddle/journal";
import type { StoredEvent } from "@heddle/protocol";
import type { Earlier } from "./flips.ts";

/** The last ones say enough: a check that flips is run again anyway. */
const MAX_ROUNDS = 20;

/** `base`: the beginning it is judged on, by its hash; what was judged on another cannot be compared. */
export async function readEarlierChecks(journal: Journal, stream: string, base: string): Promise<readonly Earlier[]> {
  const kinds = ["task.checked"] as const;
  return earlierChecks(await journal.marks.events({ stream, kinds, name: base, newest: MAX_ROUNDS }), base);
}

/** The same from a log that was read whole. */
export function earlierChecks(log: readonly StoredEvent[], base: string): readonly Earlier[] {
  return log
    .flatMap(({ body }) => (body.type === "task.checked" && body.work?.base === base ? [body] : []))
    .flatMap(({ results, work }) => (work === undefined ? [] : [{ results, work }]))
    .slice(-MAX_ROUNDS);
}
