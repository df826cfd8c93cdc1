/**
 * One row per thread: the envelope it is in, since when, what was done in it, and the way back. A hop puts the envelope it
 * leaves on the stack; `back` takes it down again; an envelope that the settings give keeps the stack to its depth.
 */
import type { EventOf, HopChannel, StoredEvent } from "@heddle/protocol";
import { integer, optionalText, text, type Row } from "../record/rows.ts";
import { NO_CHANGES, NO_LOOKS, type Projection, type RowChange } from "./changes.ts";

const table = "thread_envelopes";

/** A chain of hops that is longer has lost its way; the oldest step is forgotten. */
const MAX_STACK = 16;

export interface EnvelopeStep {
  readonly id: string;
  readonly hash: string;
  /** By which it was left. */
  readonly channel?: HopChannel | undefined;
}

export const threadEnvelopes: Projection = {
  table,
  needs({ stream, body }) {
    if (body.type !== "envelope.entered") return NO_LOOKS;
    const columns = ["id", "hash", "stack", "ceiling", "turn_id", "turn_hops"];
    return [{ table, columns, where: { thread_id: stream } }];
  },
  changes(event, [known]) {
    const { stream, version, body } = event;
    const where = { thread_id: stream };
    switch (body.type) {
      case "envelope.entered":
        return [entered(event, body, known?.[0])];
      case "envelope.left":
        return body.cause === "end" ? [{ kind: "update", table, where, set: { left_version: version } }] : NO_CHANGES;
      case "tool.intended":
        return [{ kind: "update", table, where, add: { calls: 1 } }];
      case "tool.settled":
        if (body.bytesWritten === undefined) return NO_CHANGES;
        return [{ kind: "update", table, where, add: { bytes_written: body.bytesWritten } }];
      case "thread.deleted":
        return [{ kind: "delete", table, where }];
      default:
        return NO_CHANGES;
    }
  },
};

function entered(
  { stream, version, at }: StoredEvent,
  body: EventOf<"envelope.entered">,
  known: Row | undefined,
): RowChange {
  const ceiling = body.ceiling === undefined ? undefined : JSON.stringify(body.ceiling);
  const values = {
    id: body.envelope.id,
    envelope: JSON.stringify(body.envelope),
    hash: body.envelopeHash,
    ceiling: ceiling ?? (known === undefined ? null : (optionalText(known, "ceiling") ?? null)),
    stack: JSON.stringify(stackAfter(body, known)),
    cause: body.cause,
    entered_version: version,
    entered_at: at,
    left_version: null,
    calls: 0,
    bytes_written: 0,
    turn_id: body.duringTurn ?? null,
    turn_hops: hopsAfter(body, known),
  };
  return { kind: "put", table, key: { thread_id: stream }, values };
}

function stackAfter({ cause, depth, hop }: EventOf<"envelope.entered">, known: Row | undefined): EnvelopeStep[] {
  const before = known === undefined ? [] : stackIn(known);
  if (cause !== "hop" || known === undefined) return before.slice(0, depth);
  const channel = hop === undefined ? {} : { channel: hop.channel };
  return [...before, { id: text(known, "id"), hash: text(known, "hash"), ...channel }].slice(-MAX_STACK);
}

/** Of the model, in the turn of the event. */
function hopsAfter({ duringTurn, hop }: EventOf<"envelope.entered">, known: Row | undefined): number {
  const isSame = known !== undefined && duringTurn !== undefined && optionalText(known, "turn_id") === duringTurn;
  return (isSame ? integer(known, "turn_hops") : 0) + (hop?.channel === "model" ? 1 : 0);
}

export function stackIn(row: Row): EnvelopeStep[] {
  return JSON.parse(text(row, "stack")) as EnvelopeStep[];
}
