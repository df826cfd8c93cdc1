/** Searches text. A scan in steps: searches are rare, and an index would cost every append. */
import type { ThreadQueries } from "../../queries/threads.ts";
import { EVENT_COLUMNS, integer, toEvent } from "../../record/rows.ts";
import { get, rowsAs, type Asking } from "../ask.ts";
import type { Dialect } from "../dialect.ts";

const SAID = "('item.completed', 'thread.named')";
const STEP = `SELECT coalesce(min(position), 0) AS lowest FROM (SELECT position FROM events WHERE position < ? ORDER BY position DESC LIMIT ?) AS step`;

export function* mentions(
  { text, below, events }: Parameters<ThreadQueries["mentions"]>[0],
  { like }: Dialect,
): Asking<Awaited<ReturnType<ThreadQueries["mentions"]>>> {
  const lowest = integer(yield* get(STEP, below, events), "lowest");
  if (lowest === 0) return { found: [], lowest };
  // As it stands in stored JSON.
  const stored = JSON.stringify(text).slice(1, -1).replaceAll(/[~%_]/g, "~$&");
  const look = `SELECT ${EVENT_COLUMNS} FROM events WHERE position < ? AND position >= ? AND type IN ${SAID} AND body ${like} ? ESCAPE '~' ORDER BY position DESC`;
  return { found: yield* rowsAs(look, toEvent, below, lowest, `%${stored}%`), lowest };
}
