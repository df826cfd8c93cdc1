import type { MarkLook, MarkQueries } from "../../queries/marks.ts";
import { integer, toEvent, type Row } from "../../record/rows.ts";
import type { Connection, Read } from "../driver.ts";

export function markQueries(read: Read): MarkQueries {
  return {
    events: (look) =>
      read((connection) =>
        find(connection, look).map((mark) => {
          const row = connection.get(
            "SELECT * FROM events WHERE stream = ? AND version = ?",
            look.stream,
            versionOf(mark),
          );
          return toEvent(row ?? {});
        }),
      ),
    versions: (look) => read((connection) => find(connection, look).map(versionOf)),
  };
}

function find(connection: Connection, look: MarkLook): readonly Row[] {
  const { stream, kinds, name, after = 0, upTo = Number.MAX_SAFE_INTEGER, newest } = look;
  const where = `stream = ? AND kind IN (${kinds.map(() => "?").join(", ")}) AND version > ? AND version <= ?`;
  const named = name === undefined ? "" : " AND name = ?";
  const values = [stream, ...kinds, after, upTo, ...(name === undefined ? [] : [name])];
  const sql = `SELECT DISTINCT version FROM marks WHERE ${where}${named} ORDER BY version`;
  if (newest === undefined) return connection.all(sql, ...values);
  return connection.all(`${sql} DESC LIMIT ?`, ...values, newest).toReversed();
}

function versionOf(row: Row): number {
  return integer(row, "version");
}
