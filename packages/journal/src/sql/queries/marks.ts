import type { MarkQuery, MarkQueries } from "../../queries/marks.ts";
import { EVENT_COLUMNS, integer, text, toEvent } from "../../record/rows.ts";
import { get, NO_LIMIT, rowsAs, type Ask, type Asking } from "../ask.ts";

const STREAMS = "SELECT DISTINCT stream FROM marks WHERE kind = ? AND name = ? AND stream > ? ORDER BY stream LIMIT ?";
const EVENT = `SELECT ${EVENT_COLUMNS} FROM events WHERE stream = ? AND version = ?`;

export function markQueries(ask: Ask): MarkQueries {
  return {
    events: (look) =>
      ask(function* () {
        const events = [];
        for (const version of yield* find(look)) events.push(toEvent((yield* get(EVENT, look.stream, version)) ?? {}));
        return events;
      }),
    versions: (look) => ask(() => find(look)),
    streams: ({ kind, name, after = "", limit }) =>
      ask(() => rowsAs(STREAMS, (row) => text(row, "stream"), kind, name, after, limit)),
  };
}

function* find(look: MarkQuery): Asking<readonly number[]> {
  const { stream, kinds, name, after = 0, upTo = Number.MAX_SAFE_INTEGER, newest } = look;
  const where = `stream = ? AND kind IN (${kinds.map(() => "?").join(", ")}) AND version > ? AND version <= ?`;
  const named = name === undefined ? "" : " AND name = ?";
  const sql = `SELECT DISTINCT version FROM marks WHERE ${where}${named} ORDER BY version DESC LIMIT ?`;
  const values = [stream, ...kinds, after, upTo, ...(name === undefined ? [] : [name])];
  const versions = yield* rowsAs(sql, (row) => integer(row, "version"), ...values, newest ?? NO_LIMIT);
  return versions.toReversed();
}
