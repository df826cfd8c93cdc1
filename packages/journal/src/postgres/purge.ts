/**
 * Deletes a thread in Postgres: its end and a row that says so are one transaction; then its bodies go in slices, between which
 * others append, and any process goes on with what another has left. The bytes stay in dead rows until the server cleans them
 * up, and in its log and backups: that is said in a notice.
 */
import { setImmediate as breathe } from "node:timers/promises";
import { HeddleError, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { NAMED_WITHIN_MS, removeBlob } from "../blobs/blob-files.ts";
import type { Notice, Purge } from "../journal.ts";
import { prepare } from "../record/prepare.ts";
import { integer, text, type Row } from "../record/rows.ts";
import type { Redactor } from "../redaction/redact.ts";
import { all, rowsAs, type Ask, type Asking } from "../sql/ask.ts";
import { deletionOf, FORGET_BODIES, forgetEvidence, isEnded, nextSlice, type Forgotten } from "../sql/purge.ts";
import { blobsOfAlone } from "../sql/queries/blobs.ts";
import { storeGroup, type GroupOptions } from "./append.ts";
import { POSTGRES } from "./dialect.ts";
import type { Transaction } from "./transaction.ts";
import type { Writer } from "./writer.ts";

export interface PurgeOptions {
  readonly home: string;
  readonly writer: Writer;
  readonly ask: Ask;
  readonly group: GroupOptions;
  readonly redactor: Redactor;
  readonly inTurn: <T>(work: () => Promise<T>) => Promise<T>;
  readonly notice: (notice: Notice) => void;
}

/** In the turn of the caller; bodies go with the next `finishPurges`. */
export function endThread({ writer, group, redactor }: PurgeOptions, asked: Purge): Promise<StoredEvent> {
  const { stream, author, reason } = asked;
  const work = async (transaction: Transaction): Promise<StoredEvent> => {
    const deletion = await transaction.ask(deletionOf(stream, reason));
    const prepared = prepare({ stream, author, events: [deletion] }, redactor);
    const [decided] = await storeGroup(transaction, [prepared], group);
    if (decided?.kind === "refused") throw decided.error;
    const deleted = decided?.kind === "stored" ? decided.events[0] : undefined;
    if (deleted === undefined) throw new HeddleError("internal", `the end of ${stream} was not stored`);
    const sql =
      "INSERT INTO purges (stream, before) VALUES (?, ?) ON CONFLICT (stream) DO UPDATE SET before = excluded.before";
    transaction.write([{ sql, values: [stream, deleted.version] }]);
    return deleted;
  };
  return writer.write({ work, mark: ({ id }) => id });
}

/** Carries every noted purge out, also one that another process has left. */
export async function finishPurges(options: PurgeOptions): Promise<void> {
  const { ask, writer, inTurn } = options;
  for (const purged of await ask(() => rowsAs("SELECT stream, before FROM purges ORDER BY stream", toForgotten))) {
    if (await ask(() => isEnded(purged))) await forget(options, purged);
    const sql = "DELETE FROM purges WHERE stream = ? AND before = ?";
    await inTurn(() => run(writer, () => all(sql, purged.stream, purged.before)));
  }
}

function toForgotten(row: Row): Forgotten {
  return { stream: text(row, "stream"), before: integer(row, "before") };
}

async function forget({ home, ask, writer, inTurn, notice }: PurgeOptions, purged: Forgotten): Promise<void> {
  // First, because what the bodies name is not known any more once they are gone.
  for (const { sha256, at } of await ask(() => blobsOfAlone(purged.stream, POSTGRES)))
    // A later one was written by somebody who is about to name it, unless that is long ago.
    await removeBlob(home, { name: sha256, mtimeMs: Math.max(at + 1, Date.now() - NAMED_WITHIN_MS) });
  for (let after: number | undefined = 0; after !== undefined;) {
    const from: number = after;
    after = await inTurn(() => run(writer, () => forgetSome(purged, from)));
    if (after !== undefined) failpoint("purge.after-slice");
    await breathe();
  }
  const message =
    "what was deleted stays in dead rows of the database until it is vacuumed, in its log, and in backups";
  notice({ kind: "purge-unsettled", message });
}

function* forgetSome(purged: Forgotten, after: number): Asking<number | undefined> {
  const { stream } = purged;
  const upTo = yield* nextSlice(purged, after);
  if (upTo === undefined) return undefined;
  yield* forgetEvidence({ stream, after, upTo }, (position) =>
    all("DELETE FROM evidence_words WHERE position = ?", position),
  );
  yield* all(FORGET_BODIES, stream, after, upTo);
  return upTo;
}

/** Whatever comes of it, it may be done again. */
function run<T>(writer: Writer, asking: () => Asking<T>): Promise<T> {
  return writer.write({ work: ({ ask }) => ask(asking()), mark: () => undefined });
}
