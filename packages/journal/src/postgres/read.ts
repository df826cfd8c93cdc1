/** Reads by cursor: by version within a stream, by position in the whole journal; as much as is sensible to hold at once. */
import type { StoredEvent } from "@heddle/protocol";
import { breathe } from "../record/breathe.ts";
import type { ReadOptions } from "../journal.ts";
import { EVENT_COLUMNS, integer, toEvent, type Row } from "../record/rows.ts";
import { REPLAY_COLUMNS, REPLAY_PAGE } from "../sql/replay.ts";
import { all, NO_LIMIT, type Ask, type Asking, type Value } from "../sql/ask.ts";

export const BATCH_EVENTS = 256;
/** One event may be as large as an image; a batch of them must not be. */
const BATCH_BYTES = 1024 * 1024;

export interface Batch {
  readonly events: readonly StoredEvent[];
  /** Of their stored bodies. */
  readonly bytes: number;
  /** More may follow: it was ended for its size. */
  readonly isCut: boolean;
}

interface Page {
  readonly columns: string;
  readonly where: string;
  readonly order: "position" | "version";
  readonly bytes: number;
}

/** Rows in order, up to a number of them and of bytes; the one that fills it is the last. `upto`: bytes to its end. */
export function pageSql({ columns, where, order, bytes }: Page): string {
  const size = "coalesce(octet_length(body), 0)";
  return `SELECT ${columns}, upto FROM (
    SELECT *, sum(${size}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS upto
    FROM events WHERE ${where} ORDER BY ${order} LIMIT ?) AS page WHERE upto - ${size} < ${bytes} ORDER BY ${order}`;
}

export function* readBatch({ stream, after, limit = NO_LIMIT, types }: ReadOptions): Asking<Batch> {
  const most = Math.min(limit, NO_LIMIT);
  const order = stream === undefined ? "position" : "version";
  // Without purged events: a reader of everything must get past deleted threads.
  const of = stream === undefined ? "body IS NOT NULL" : "stream = ?";
  const typed = types === undefined ? "" : ` AND type IN (${types.map(() => "?").join(", ")})`;
  const where = `${of} AND ${order} > ?${typed}`;
  const values: Value[] = [...(stream === undefined ? [] : [stream]), after, ...(types ?? []), most];
  const rows = yield* all(pageSql({ columns: EVENT_COLUMNS, where, order, bytes: BATCH_BYTES }), ...values);
  const last = rows.at(-1);
  const bytes = last === undefined ? 0 : integer(last, "upto");
  return { events: rows.map(toEvent), bytes, isCut: bytes >= BATCH_BYTES || rows.length >= most };
}

/** All that was asked for, read in turns with everything else. */
export async function readAll(ask: Ask, options: ReadOptions): Promise<Omit<Batch, "isCut">> {
  const { stream, after, limit = Infinity } = options;
  const events: StoredEvent[] = [];
  let bytes = 0;
  for (;;) {
    const last = events.at(-1);
    const from = last === undefined ? after : stream === undefined ? last.position : last.version;
    const batch = await ask(() => readBatch({ ...options, after: from, limit: limit - events.length }));
    for (const event of batch.events) events.push(event);
    bytes += batch.bytes;
    if (!batch.isCut || events.length >= limit) break;
    await breathe();
  }
  return { events, bytes };
}

export function* replayPage({
  stream,
  after,
}: {
  readonly stream: string | undefined;
  readonly after: number;
}): Asking<readonly Row[]> {
  const order = stream === undefined ? "position" : "version";
  const where = `${stream === undefined ? "" : "stream = ? AND "}${order} > ?`;
  const sql = pageSql({ columns: REPLAY_COLUMNS, where, order, bytes: REPLAY_PAGE.chars });
  return yield* all(sql, ...(stream === undefined ? [] : [stream]), after, REPLAY_PAGE.events);
}

/** Rows as they are stored. */
export function* readRows({
  stream,
  after,
  upTo,
}: {
  readonly stream: string;
  readonly after: number;
  readonly upTo: number;
}): Asking<readonly Row[]> {
  const where = "stream = ? AND version > ? AND version <= ?";
  const sql = pageSql({ columns: EVENT_COLUMNS, where, order: "version", bytes: BATCH_BYTES });
  const rows = yield* all(sql, stream, after, upTo, BATCH_EVENTS);
  return rows.map(({ upto: _upto, ...row }) => row);
}

export function* readVersions(stream: string, first: number, last: number): Asking<readonly StoredEvent[]> {
  const sql = `SELECT ${EVENT_COLUMNS} FROM events WHERE stream = ? AND version >= ? AND version <= ? ORDER BY version`;
  return (yield* all(sql, stream, first, last)).map(toEvent);
}
