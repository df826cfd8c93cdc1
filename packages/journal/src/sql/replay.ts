/** Reads the events of a store for `replay`: in their order, a page at a time, and only the bodies that are looked at. */
import { setImmediate as breathe } from "node:timers/promises";
import { toEntry } from "../evidence/replay-entry.ts";
import type { VerifyWatch } from "../journal.ts";
import { integer, type Row } from "../record/rows.ts";
import { READ_TYPES, type Entry } from "../replay/facts.ts";
import { createReplay, type ReplayReport } from "../replay/replay.ts";
import { get, type Ask } from "./ask.ts";
import { lastPosition } from "./stored-rows.ts";

const TYPES = [...READ_TYPES].map((type) => `'${type}'`).join(", ");
export const REPLAY_COLUMNS = `position, stream, version, at, author, type, CASE WHEN body IS NULL THEN 1 ELSE 0 END AS is_purged,
  CASE WHEN type IN (${TYPES}) THEN body END AS body`;
export const REPLAY_PAGE = {
  events: 512,
  /** Outputs of commands are in bodies too; a page of the largest must not fill memory. */
  chars: 8 * 1024 * 1024,
};

export interface ReplaySource {
  readonly ask: Ask;
  /** With these columns: of one stream after a version, or of all after a position. */
  readonly page: (of: { readonly stream: string | undefined; readonly after: number }) => Promise<readonly Row[]>;
}

export async function replayStore(
  { ask, page }: ReplaySource,
  {
    stream,
    signal,
    onProgress = () => undefined,
  }: Pick<VerifyWatch, "onProgress" | "signal"> & { readonly stream: string | undefined },
): Promise<ReplayReport> {
  const of = stream === undefined ? await lastPosition(ask) : undefined;
  const replay = createReplay();
  const cursor = stream === undefined ? "position" : "version";
  for (let after = 0, events = 0; ;) {
    const rows = await page({ stream, after });
    for (const row of rows) {
      const entry = toEntry(row, integer(row, "is_purged") === 1);
      replay.take(isReply(entry) ? await withReply(ask, row, entry) : entry);
    }
    const last = rows.at(-1);
    if (last === undefined) return replay.end();
    after = integer(last, cursor);
    events += rows.length;
    onProgress({ events, of });
    await breathe();
    signal?.throwIfAborted();
  }
}

const REPLIES: ReadonlySet<string> = new Set(["evidence.noted", "message.received", "message.settled"]);

function isReply({ type, body }: Entry): boolean {
  return REPLIES.has(type) && typeof body?.["replyTo"] === "string";
}

/** Whom a note or a message answers: an earlier event of any stream, by its id. */
async function withReply(ask: Ask, row: Row, entry: Entry): Promise<Entry> {
  const target = String(entry.body?.["replyTo"]);
  const found = await ask(() => get("SELECT position FROM events WHERE id = ?", target));
  const isOrphan = found === undefined || integer(found, "position") >= integer(row, "position");
  return { ...entry, isOrphan };
}
