/**
 * Writing to stdout and stderr. A reader that is slow holds up only the printing; a reader that has gone away ends it:
 * the turn continues, its record is in the journal.
 */
import { setTimeout } from "node:timers/promises";
import type { ItemDelta, StoredEvent } from "@heddle/protocol";

export interface Output {
  readonly isTerminal: boolean;
  /** The reader has gone away; writes do nothing. */
  readonly isClosed: boolean;
  /** The reader has not taken what was written; anything that can be said later should be. */
  readonly isBehind: boolean;
  /** Resolves when there is room for more. */
  write(text: string): Promise<void>;
}

const BEHIND_BYTES = 256 * 1024; // about two screens of the widest terminal, many times over

export function openOutput(stream: NodeJS.WriteStream): Output {
  let isClosed = false;
  const close = (): void => {
    isClosed = true;
  };
  stream.on("error", close).on("close", close);
  return {
    isTerminal: stream.isTTY,
    get isClosed() {
      return isClosed;
    },
    get isBehind() {
      return stream.writableLength > BEHIND_BYTES;
    },
    async write(text) {
      if (isClosed || stream.write(text)) return;
      await hasRoom(stream);
    },
  };
}

const abandoned = new WeakSet<NodeJS.WriteStream>();

/** Of a connection that is over: what its client has not read by now is not waited for. Node cannot close standard streams. */
export function abandonOutput(stream: NodeJS.WriteStream): void {
  abandoned.add(stream);
}

/** A reader that takes nothing for so long has stopped reading. */
const SILENT_MS = 2_000;

/** The same once its reader has stopped reading: one that is slow gets everything. */
export async function abandonSilentOutput(stream: NodeJS.WriteStream): Promise<void> {
  for (let left = stream.writableLength; left > 0 && !stream.destroyed; left = stream.writableLength) {
    await setTimeout(SILENT_MS);
    if (stream.writableLength === left) return abandonOutput(stream);
  }
}

/** Resolves when everything written has been handed over, or the reader has gone. */
export async function flushed(stream: NodeJS.WriteStream): Promise<void> {
  if (abandoned.has(stream)) return;
  // A write to a file fails in the same turn of the loop and says so in the next.
  await new Promise((resolve) => setImmediate(resolve));
  if (stream.destroyed || stream.writableLength === 0) return;
  // Called after all earlier writes, and with an error when the reader is gone; either way it is over.
  await new Promise<void>((resolve) => stream.write("", () => resolve()));
}

function hasRoom(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      stream.off("drain", settle).off("close", settle).off("error", settle);
      resolve();
    };
    stream.on("drain", settle).on("close", settle).on("error", settle);
  });
}

/** A printer follows one turn: stored events in order, and in between the live deltas of running items. It keeps no state
 *  of its own beyond what it has already shown. */
export interface Printer {
  /** Resolves when there is room for more. */
  event(event: StoredEvent): Promise<void>;
  delta(delta: ItemDelta): void;
  /** Something to know that is no event of the turn. */
  notice(text: string): Promise<void>;
}

/** Bytes as they are; a reader that has gone away ends it. */
export async function writeBytes(
  stream: NodeJS.WriteStream,
  pieces: AsyncIterable<Uint8Array | string>,
): Promise<void> {
  let isClosed = false;
  const close = (): void => {
    isClosed = true;
  };
  stream.on("error", close).on("close", close);
  for await (const piece of pieces) {
    if (isClosed) return;
    if (!stream.write(piece)) await hasRoom(stream);
  }
}
