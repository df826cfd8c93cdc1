/** Searches text. A scan in steps: searches are rare, and an index would cost every append. */
import type { Connection } from "../driver.ts";
import type { ThreadQueries } from "../../queries/threads.ts";
import { EVENT_COLUMNS, integer, toEvent } from "../../record/rows.ts";

const SAID = "('item.completed', 'thread.named')";
const STEP = `SELECT coalesce(min(position), 0) AS lowest FROM (SELECT position FROM events WHERE position < ? ORDER BY position DESC LIMIT ?)`;
const LOOK = `SELECT ${EVENT_COLUMNS} FROM events WHERE position < ? AND position >= ? AND type IN ${SAID} AND body LIKE ? ESCAPE '~' ORDER BY position DESC`;

export function mentions(
  connection: Connection,
  { text, below, events }: Parameters<ThreadQueries["mentions"]>[0],
): Awaited<ReturnType<ThreadQueries["mentions"]>> {
  const lowest = integer(connection.get(STEP, below, events), "lowest");
  if (lowest === 0) return { found: [], lowest };
  // As it stands in stored JSON.
  const stored = JSON.stringify(text).slice(1, -1).replaceAll(/[~%_]/g, "~$&");
  return { found: connection.all(LOOK, below, lowest, `%${stored}%`).map(toEvent), lowest };
}
