/** Reads the events of a store for `replay`: in their order, a page at a time, and only the bodies that are looked at. */
import { setImmediate as breathe } from "node:timers/promises";
import type { VerifyWatch } from "../journal.ts";
import { integer, optionalText, type Row } from "../record/rows.ts";
import { READ_TYPES, type Entry } from "../replay/facts.ts";
import { toEntry } from "../evidence/replay-entry.ts";
import { createReplay, type ReplayReport } from "../replay/replay.ts";
import { untilFree, type Connection } from "./driver.ts";
import { lastPosition } from "./read.ts";

const PAGE_EVENTS = 512;
/** Outputs of commands are in bodies too; a page of the largest must not fill memory. */
const PAGE_CHARS = 8 * 1024 * 1024;

const TYPES = [...READ_TYPES].map((type) => `'${type}'`).join(", ");
const COLUMNS = `position, stream, version, at, author, type, body IS NULL AS is_purged,
  CASE WHEN type IN (${TYPES}) THEN body END AS body`;

export async function replayStore(
  connection: Connection,
  {
    stream,
    signal,
    onProgress = () => undefined,
  }: Pick<VerifyWatch, "onProgress" | "signal"> & { readonly stream: string | undefined },
): Promise<ReplayReport> {
  const of = stream === undefined ? lastPosition(connection) : undefined;
  const replay = createReplay();
  const cursor = stream === undefined ? "position" : "version";
  const sql = `SELECT ${COLUMNS} FROM events WHERE ${stream === undefined ? "" : "stream = ? AND "}${cursor} > ? ORDER BY ${cursor} LIMIT ${PAGE_EVENTS}`;
  for (let after = 0, events = 0; ;) {
    const rows = await untilFree(() => page(connection, sql, [...(stream === undefined ? [] : [stream]), after]));
    for (const row of rows) replay.take(withReply(connection, row, toEntry(row, integer(row, "is_purged") === 1)));
    const last = rows.at(-1);
    if (last === undefined) return replay.end();
    after = integer(last, cursor);
    events += rows.length;
    onProgress({ events, of });
    await breathe();
    signal?.throwIfAborted();
  }
}

function page(connection: Connection, sql: string, values: readonly (string | number)[]): readonly Row[] {
  const rows: Row[] = [];
  let chars = 0;
  for (const row of connection.iterate(sql, ...values)) {
    rows.push(row);
    chars += optionalText(row, "body")?.length ?? 0;
    if (chars >= PAGE_CHARS) break;
  }
  return rows;
}

const REPLIES: ReadonlySet<string> = new Set(["evidence.noted", "message.received", "message.settled"]);

/** Whom a note or a message answers: an earlier event of any stream, by its id. */
function withReply(connection: Connection, row: Row, entry: Entry): Entry {
  const target = REPLIES.has(entry.type) ? entry.body?.["replyTo"] : undefined;
  if (typeof target !== "string") return entry;
  const found = connection.get("SELECT position FROM events WHERE id = ?", target);
  const isOrphan = found === undefined || integer(found, "position") >= integer(row, "position");
  return { ...entry, isOrphan };
}
