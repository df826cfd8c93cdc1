import type { StoredRows } from "../evidence/stored-rows.ts";
import { EVENT_COLUMNS, integer } from "../record/rows.ts";
import { all, get, type Ask } from "./ask.ts";

const SELECT_HEAD = "SELECT position, stream, version, type, at, hash FROM events";
const LAST_POSITION = "SELECT coalesce(max(position), 0) AS last FROM events";
const LAST_VERSION = "SELECT coalesce(max(version), 0) AS last FROM events WHERE stream = ?";

/** A stored event may be large: how many are read at once is for each store to say. */
export function storedRows(ask: Ask, store: Pick<StoredRows, "pageOf" | "damageOf" | "shared">): StoredRows {
  return {
    lastPosition: () => lastPosition(ask),
    lastVersion: (stream) => lastVersion(ask, stream),
    page: ({ after, upTo = Number.MAX_SAFE_INTEGER, stream }, limit) => {
      const cursor = stream === undefined ? "position" : "version";
      const where = `${stream === undefined ? "" : "stream = ? AND "}${cursor} > ? AND ${cursor} <= ?`;
      const sql = `SELECT ${EVENT_COLUMNS} FROM events WHERE ${where} ORDER BY ${cursor} LIMIT ?`;
      return ask(() => all(sql, ...(stream === undefined ? [] : [stream]), after, upTo, limit));
    },
    at: (position) => ask(() => get(`${SELECT_HEAD} WHERE position = ?`, position)),
    of: (stream, version) => ask(() => get(`${SELECT_HEAD} WHERE stream = ? AND version = ?`, stream, version)),
    lastOf: (stream, position) =>
      position === undefined
        ? ask(() => get(`${SELECT_HEAD} WHERE stream = ? ORDER BY version DESC LIMIT 1`, stream))
        : // The plus keeps a planner from walking all positions backwards.
          ask(() =>
            get(`${SELECT_HEAD} WHERE stream = ? AND +position <= ? ORDER BY +position DESC LIMIT 1`, stream, position),
          ),
    ...store,
  };
}

export function lastPosition(ask: Ask): Promise<number> {
  return ask(function* () {
    return integer(yield* get(LAST_POSITION), "last");
  });
}

export function lastVersion(ask: Ask, stream: string): Promise<number> {
  return ask(function* () {
    return integer(yield* get(LAST_VERSION, stream), "last");
  });
}
