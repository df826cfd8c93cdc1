import type { StoredRows } from "../evidence/stored-rows.ts";
import { EVENT_COLUMNS } from "../record/rows.ts";
import { untilFree, type Connection, type Read } from "./driver.ts";
import { lastPosition, lastVersion, readRows } from "./read.ts";
import { asDamage } from "./store-errors.ts";

const SELECT_HEAD = "SELECT position, stream, version, type, at, hash FROM events";

export function storedRows(read: Read): StoredRows {
  return {
    lastPosition: () => read(lastPosition),
    lastVersion: (stream) => read((connection) => lastVersion(connection, stream)),
    page: ({ after, upTo = Number.MAX_SAFE_INTEGER, stream }, limit) =>
      read((connection) => {
        const cursor = stream === undefined ? "position" : "version";
        const where = `${stream === undefined ? "" : "stream = ? AND "}${cursor} > ? AND ${cursor} <= ?`;
        const sql = `SELECT ${EVENT_COLUMNS} FROM events WHERE ${where} ORDER BY ${cursor} LIMIT ?`;
        return connection.all(sql, ...(stream === undefined ? [] : [stream]), after, upTo, limit);
      }),
    pageOf: (range) => read((connection) => readRows(connection, range)),
    at: (position) => read((connection) => connection.get(`${SELECT_HEAD} WHERE position = ?`, position)),
    of: (stream, version) =>
      read((connection) => connection.get(`${SELECT_HEAD} WHERE stream = ? AND version = ?`, stream, version)),
    lastOf: (stream, position) =>
      read((connection) =>
        position === undefined
          ? connection.get(`${SELECT_HEAD} WHERE stream = ? ORDER BY version DESC LIMIT 1`, stream)
          : // The plus keeps SQLite from walking all positions backwards.
            connection.get(
              `${SELECT_HEAD} WHERE stream = ? AND +position <= ? ORDER BY +position DESC LIMIT 1`,
              stream,
              position,
            ),
      ),
    damageOf: asDamage,
  };
}

export function rowsOf(connection: Connection): StoredRows {
  return storedRows((work) => untilFree(() => work(connection)));
}
