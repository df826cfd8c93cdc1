import type { VerifyWatch } from "../journal.ts";
import { optionalText, type Row } from "../record/rows.ts";
import type { ReplayReport } from "../replay/replay.ts";
import type { Ask } from "../sql/ask.ts";
import { REPLAY_COLUMNS, REPLAY_PAGE, replayStore as replay, type ReplaySource } from "../sql/replay.ts";
import { answer, untilFree, type Connection } from "./driver.ts";

export async function replayStore(
  connection: Connection,
  watch: Pick<VerifyWatch, "onProgress" | "signal"> & { readonly stream: string | undefined },
): Promise<ReplayReport> {
  const ask: Ask = (asking) => untilFree(() => answer(connection, asking()));
  return await replay({ ask, page: (of) => untilFree(() => page(connection, of)) }, watch);
}

function page(connection: Connection, { stream, after }: Parameters<ReplaySource["page"]>[0]): readonly Row[] {
  const cursor = stream === undefined ? "position" : "version";
  const where = `${stream === undefined ? "" : "stream = ? AND "}${cursor} > ?`;
  const sql = `SELECT ${REPLAY_COLUMNS} FROM events WHERE ${where} ORDER BY ${cursor} LIMIT ${REPLAY_PAGE.events}`;
  const rows: Row[] = [];
  let chars = 0;
  for (const row of connection.iterate(sql, ...(stream === undefined ? [] : [stream]), after)) {
    rows.push(row);
    chars += optionalText(row, "body")?.length ?? 0;
    if (chars >= REPLAY_PAGE.chars) break;
  }
  return rows;
}
