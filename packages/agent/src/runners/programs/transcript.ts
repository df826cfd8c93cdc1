/**
 * Everything that was said on the wire of an agent program, as it was said, without secrets: one JSON line for each line,
 * written as it comes. Bounded; where it was cut, it says so.
 */
import { createWriteStream, mkdirSync, type WriteStream } from "node:fs";
import { once } from "node:events";
import { dirname } from "node:path";
import type { Redactor } from "@heddle/journal";
import { clockMs } from "@heddle/protocol";

/** A long turn says a few megabytes. */
const MAX_BYTES = 64 * 1024 * 1024;
/** A longer line is mostly a file or a picture. */
const MAX_LINE_CHARS = 256 * 1024;

export type Direction = "in" | "out" | "err";

export interface Transcript extends AsyncDisposable {
  /** The promise stops the reader of the wire until the file has taken it. */
  add(direction: Direction, line: string): Promise<void> | undefined;
}

export function openTranscript(file: string, redactor: Pick<Redactor, "text">): Transcript {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const stream: WriteStream = createWriteStream(file, { flags: "a", mode: 0o600 });
  const beganAt = clockMs();
  let bytes = 0;
  let isFull = false;
  // A disk that is full stops no turn: the record has what counts.
  stream.on("error", () => {
    isFull = true;
  });

  function write(entry: Readonly<Record<string, unknown>>): Promise<void> | undefined {
    const line = `${JSON.stringify(entry)}\n`;
    bytes += Buffer.byteLength(line);
    if (stream.write(line) || stream.destroyed) return undefined;
    return Promise.race([once(stream, "drain"), once(stream, "close")]).then(
      () => undefined,
      () => undefined,
    );
  }

  return {
    add(direction, line) {
      if (isFull) return undefined;
      if (bytes > MAX_BYTES) {
        isFull = true;
        return write({ t: Math.round(clockMs() - beganAt), cut: "the transcript is full; the rest was not kept" });
      }
      const cut = line.length > MAX_LINE_CHARS ? { cut: line.length - MAX_LINE_CHARS } : {};
      const text = redactor.text(line.slice(0, MAX_LINE_CHARS));
      return write({ t: Math.round(clockMs() - beganAt), [direction]: text, ...cut });
    },
    async [Symbol.asyncDispose]() {
      if (stream.destroyed) return;
      const closed = once(stream, "close");
      stream.end();
      await closed.catch(() => undefined);
    },
  };
}
