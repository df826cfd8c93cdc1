/** The row of the envelope that a thread is in. */
import type { Envelope } from "@heddle/protocol";
import { stackIn } from "../../projections/thread-envelopes.ts";
import type { ThreadEnvelopeRow } from "../../queries/threads.ts";
import { integer, optionalInteger, optionalText, text, wrongKind, type Row } from "../../record/rows.ts";

export const THREAD_ENVELOPE =
  "SELECT envelope, hash, ceiling, stack, cause, entered_version, entered_at, left_version, calls, bytes_written, turn_id, turn_hops FROM thread_envelopes WHERE thread_id = ?";

const CAUSES = ["start", "settings", "hop", "back"] as const;

export function toThreadEnvelope(row: Row): ThreadEnvelopeRow {
  const ceiling = optionalText(row, "ceiling");
  const turnId = optionalText(row, "turn_id");
  const cause = CAUSES.find((known) => known === text(row, "cause"));
  if (cause === undefined) throw wrongKind("cause");
  return {
    envelope: JSON.parse(text(row, "envelope")) as Envelope,
    hash: text(row, "hash"),
    ceiling: ceiling === undefined ? undefined : (JSON.parse(ceiling) as Envelope),
    stack: stackIn(row),
    cause,
    enteredVersion: integer(row, "entered_version"),
    enteredAt: integer(row, "entered_at"),
    isLeft: optionalInteger(row, "left_version") !== undefined,
    calls: integer(row, "calls"),
    bytesWritten: integer(row, "bytes_written"),
    modelHops: turnId === undefined ? undefined : { turnId, count: integer(row, "turn_hops") },
  };
}
