/**
 * Everything that was said on the wire of an agent program, as it was said, without secrets: one JSON line for each line,
 * written as it comes. What comes while a write is under way is written together after it. Bounded; where it was cut, it says so.
 */
import { mkdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Redactor } from "@heddle/journal";
import { clockMs } from "@heddle/protocol";

/** A long turn says a few megabytes. */
const MAX_BYTES = 64 * 1024 * 1024;
/** A longer line is mostly a file or a picture. */
const MAX_LINE_CHARS = 256 * 1024;
/** As much may wait for the file; then the reader of the wire waits. */
const MAX_WAITING_CHARS = 256 * 1024;

export type Direction = "in" | "out" | "err";

export interface Transcript extends AsyncDisposable {
  /** The promise stops the reader of the wire until the file has taken it. */
  add(direction: Direction, line: string): Promise<void> | undefined;
}

export function openTranscript(file: string, redactor: Pick<Redactor, "text">): Transcript {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const opened = open(file, "a", 0o600);
  opened.catch(() => undefined);
  const beganAt = clockMs();
  let waiting = "";
  let bytes = 0;
  let isFull = false;
  let writing: Promise<void> | undefined;
  let closed: Promise<void> | undefined;

  /** Until nothing waits. A disk that is full stops no turn: the record has what counts. */
  async function writeAll(): Promise<void> {
    try {
      const handle = await opened;
      while (waiting !== "") {
        const text = waiting;
        waiting = "";
        await handle.appendFile(text);
      }
    } catch {
      isFull = true;
      waiting = "";
    } finally {
      writing = undefined;
    }
  }

  function write(entry: Readonly<Record<string, unknown>>): Promise<void> | undefined {
    const line = `${JSON.stringify(entry)}\n`;
    bytes += Buffer.byteLength(line);
    waiting += line;
    writing ??= writeAll();
    return waiting.length > MAX_WAITING_CHARS ? writing : undefined;
  }

  async function close(): Promise<void> {
    await writing;
    await opened.then(
      (handle) => handle.close(),
      () => undefined,
    );
  }

  return {
    add(direction, line) {
      if (isFull || closed !== undefined) return undefined;
      if (bytes > MAX_BYTES) {
        isFull = true;
        return write({ t: Math.round(clockMs() - beganAt), cut: "the transcript is full; the rest was not kept" });
      }
      const cut = line.length > MAX_LINE_CHARS ? { cut: line.length - MAX_LINE_CHARS } : {};
      const text = redactor.text(line.slice(0, MAX_LINE_CHARS));
      return write({ t: Math.round(clockMs() - beganAt), [direction]: text, ...cut });
    },
    [Symbol.asyncDispose]: () => (closed ??= close()),
  };
}
