import type { MarkQuery, MarkQueries } from "../../queries/marks.ts";
import { integer, text, toEvent } from "../../record/rows.ts";
import type { Connection, Read } from "../driver.ts";

export function markQueries(read: Read): MarkQueries {
  const STREAMS =
    "SELECT DISTINCT stream FROM marks WHERE kind = ? AND name = ? AND stream > ? ORDER BY stream LIMIT ?";
  const EVENT = "SELECT * FROM events WHERE stream = ? AND version = ?";
  return {
    events: (look) =>
      read((connection) =>
        find(connection, look).map((version) => toEvent(connection.get(EVENT, look.stream, version) ?? {})),
      ),
    versions: (look) => read((connection) => find(connection, look)),
    streams: ({ kind, name, after = "", limit }) =>
      read((connection) => connection.all(STREAMS, kind, name, after, limit).map((row) => text(row, "stream"))),
  };
}

function find(connection: Connection, look: MarkQuery): readonly number[] {
  const { stream, kinds, name, after = 0, upTo = Number.MAX_SAFE_INTEGER, newest } = look;
  const where = `stream = ? AND kind IN (${kinds.map(() => "?").join(", ")}) AND version > ? AND version <= ?`;
  const named = name === undefined ? "" : " AND name = ?";
  const sql = `SELECT DISTINCT version FROM marks WHERE ${where}${named} ORDER BY version DESC LIMIT ?`;
  const values = [stream, ...kinds, after, upTo, ...(name === undefined ? [] : [name])];
  const rows = connection.all(sql, ...values, newest ?? -1);
  return rows.toReversed().map((row) => integer(row, "version"));
}
