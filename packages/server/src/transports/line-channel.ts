/** Messages as lines over a pair of streams. A line that is too long is not kept: memory does not grow with it. */
import { StringDecoder } from "node:string_decoder";
import type { Readable, Writable } from "node:stream";
import { CLOSE_GRACE_MS, MAX_MESSAGE_BYTES, type Channel, type ChannelListener } from "../rpc/channel.ts";

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
      const lines = createLines(given, close);
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

/** One client on standard input and output; when it ends, the server ends. */
export function stdioChannel(stdin: NodeJS.ReadStream, stdout: NodeJS.WriteStream): Channel {
  return lineChannel({
    name: "stdio",
    input: stdin,
    output: stdout,
    destroy() {
      stdin.destroy();
      stdout.destroy();
    },
  });
}

interface Lines {
  push(chunk: Buffer): void;
}

const NEWLINE = 0x0a;
/** How much of a line that is too long is passed over while its end is looked for; then nobody is there who means it. */
const MAX_PASSED_BYTES = 4 * MAX_MESSAGE_BYTES;

function createLines(listener: ChannelListener, giveUp: () => void): Lines {
  let parts: Buffer[] = [];
  let bytes = 0;

  function keep(piece: Buffer): void {
    const wasTooLong = bytes > MAX_MESSAGE_BYTES;
    bytes += piece.length;
    if (bytes <= MAX_MESSAGE_BYTES) return void parts.push(piece);
    parts = [];
    if (!wasTooLong) listener.onTooLong();
    if (bytes > MAX_PASSED_BYTES) giveUp();
  }

  function end(): void {
    const decoder = new StringDecoder("utf8");
    const line = parts.map((part) => decoder.write(part)).join("") + decoder.end();
    parts = [];
    bytes = 0;
    if (line.trim() !== "") listener.onMessage(line.trim());
  }

  return {
    push(chunk) {
      let from = 0;
      while (from < chunk.length) {
        const at = chunk.indexOf(NEWLINE, from);
        const to = at < 0 ? chunk.length : at;
        keep(chunk.subarray(from, to));
        if (at >= 0) end();
        from = to + 1;
      }
    },
  };
}
