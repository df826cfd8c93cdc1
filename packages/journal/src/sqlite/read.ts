/** Reads by cursor: by version within a stream, by position in the whole journal. */
import type { StoredEvent } from "@heddle/protocol";
import type { Connection, Row } from "./driver.ts";
import type { ReadOptions } from "../journal.ts";
import { EVENT_COLUMNS, integer, optionalText, toEvent } from "../record/rows.ts";

const OF_STREAM = `SELECT ${EVENT_COLUMNS} FROM events WHERE stream = ? AND version > ? ORDER BY version LIMIT ?`;
/** Without purged events: a reader of everything must get past deleted threads. */
const OF_JOURNAL = `SELECT ${EVENT_COLUMNS} FROM events WHERE position > ? AND body IS NOT NULL ORDER BY position LIMIT ?`;
/** No limit in SQLite. */
const NO_LIMIT = -1;

export const BATCH_EVENTS = 256;
/** One event may be as large as an image; a batch of them must not be. */
const BATCH_CHARS = 1024 * 1024;

export interface Batch {
  readonly events: readonly StoredEvent[];
  readonly chars: number;
  /** More may follow: it was ended for its size. */
  readonly isCut: boolean;
}

/** As many events as are sensible to hold at once; at least one when there is one. */
export function readBatch(connection: Connection, { stream, after, limit = Infinity, types }: ReadOptions): Batch {
  const most = Number.isFinite(limit) ? limit : NO_LIMIT;
  const sql = withTypes(stream === undefined ? OF_JOURNAL : OF_STREAM, types);
  const rows = connection.iterate(sql, ...(stream === undefined ? [] : [stream]), after, ...(types ?? []), most);
  const events: StoredEvent[] = [];
  let chars = 0;
  for (const row of rows) {
    events.push(toEvent(row));
    chars += optionalText(row, "body")?.length ?? 0;
    if (chars >= BATCH_CHARS) break;
  }
  return { events, chars, isCut: chars >= BATCH_CHARS || events.length >= limit };
}

function withTypes(sql: string, types: ReadOptions["types"]): string {
  return types === undefined
    ? sql
    : sql.replace(" ORDER BY", ` AND type IN (${types.map(() => "?").join(", ")}) ORDER BY`);
}

/** Rows as they are stored, as many as are sensible to hold at once. */
export function readRows(
  connection: Connection,
  range: { readonly stream: string; readonly after: number; readonly upTo: number },
): Row[] {
  const rows: Row[] = [];
  let chars = 0;
  for (const row of connection.iterate(OF_STREAM, range.stream, range.after, BATCH_EVENTS)) {
    if (integer(row, "version") > range.upTo) break;
    rows.push(row);
    chars += optionalText(row, "body")?.length ?? 0;
    if (chars >= BATCH_CHARS) break;
  }
  return rows;
}

export function readVersions(
  connection: Connection,
  stream: string,
  range: { readonly first: number; readonly last: number },
): StoredEvent[] {
  return connection.all(OF_STREAM, stream, range.first - 1, range.last - range.first + 1).map(toEvent);
}

export function lastVersion(connection: Connection, stream: string): number {
  const row: Row | undefined = connection.get(
    "SELECT coalesce(max(version), 0) AS last FROM events WHERE stream = ?",
    stream,
  );
  return integer(row, "last");
}

export function lastPosition(connection: Connection): number {
  return integer(connection.get("SELECT coalesce(max(position), 0) AS last FROM events"), "last");
}
