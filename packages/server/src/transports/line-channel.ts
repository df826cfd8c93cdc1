/** Messages as lines over a pair of streams. A line that has no end is not kept: memory does not grow with it. */
import { StringDecoder } from "node:string_decoder";
import type { Readable, Writable } from "node:stream";
import { CLOSE_GRACE_MS, MAX_MESSAGE_BYTES, type Channel, type ChannelListener } from "../channel.ts";

export interface LineStreams {
  readonly name: string;
  readonly input: Readable;
  readonly output: Writable;
  /** Ends both for good. */
  readonly destroy: () => void;
}

export function lineChannel({ name, input, output, destroy }: LineStreams): Channel {
  let isClosed = false;
  let isEnding = false;
  let listener: ChannelListener | undefined;

  function closed(): void {
    if (isClosed) return;
    isClosed = true;
    listener?.onClose();
  }

  function close(): void {
    if (isEnding || isClosed) return;
    isEnding = true;
    const overdue = setTimeout(destroy, CLOSE_GRACE_MS);
    overdue.unref();
    // Called when all that was written has gone out, or cannot any more.
    output.end(() => {
      clearTimeout(overdue);
      destroy();
      closed();
    });
  }

  return {
    name,
    open(given) {
      listener = given;
      const lines = createLines(given);
      input.on("data", (chunk: Buffer) => {
        if (!isEnding && !isClosed) lines.push(chunk);
      });
      input.on("end", () => given.onEnd()).on("error", closed);
      output.on("drain", () => given.onDrain());
      output.on("close", closed).on("error", closed);
    },
    send: (text) => (isEnding || isClosed ? true : output.write(`${text}\n`)),
    close,
  };
}

interface Lines {
  push(chunk: Buffer): void;
}

const NEWLINE = 0x0a;

function createLines(listener: ChannelListener): Lines {
  let parts: Buffer[] = [];
  let bytes = 0;
  let isTooLong = false;

  function take(rest: Buffer): string {
    const decoder = new StringDecoder("utf8");
    const whole = [...parts, rest].map((part) => decoder.write(part)).join("") + decoder.end();
    parts = [];
    bytes = 0;
    return whole;
  }

  return {
    push(chunk) {
      let from = 0;
      while (!isTooLong) {
        const at = chunk.indexOf(NEWLINE, from);
        const piece = chunk.subarray(from, at < 0 ? chunk.length : at);
        if (bytes + piece.length > MAX_MESSAGE_BYTES) {
          isTooLong = true;
          parts = [];
          listener.onTooLong();
          return;
        }
        if (at < 0) {
          if (piece.length > 0) parts.push(piece);
          bytes += piece.length;
          return;
        }
        const line = take(piece).trim();
        if (line !== "") listener.onMessage(line);
        from = at + 1;
      }
    },
  };
}
