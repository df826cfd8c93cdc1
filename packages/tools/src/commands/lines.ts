/**
 * Lines of a child that sends one JSON value per line. A line above the cap is reported once and skipped; the stream
 * stays usable, and memory stays bounded.
 */
import { HeddleError } from "@heddle/protocol";

const MAX_LINE_BYTES = 16 * 1024 * 1024;

const NEWLINE = 0x0a;

export type ReadLine =
  | { readonly kind: "line"; readonly text: string }
  /** A last line without newline: the peer ended in the middle of a message. */
  | { readonly kind: "partial"; readonly text: string }
  | { readonly kind: "lineTooLong"; readonly error: HeddleError; readonly bytes: number };

export async function* readLines(
  source: AsyncIterable<Uint8Array>,
  options: { readonly maxLineBytes?: number } = {},
): AsyncGenerator<ReadLine, void, undefined> {
  const maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES;
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of source) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, start);
      const piece = bytes.subarray(start, end === -1 ? bytes.length : end);
      length += piece.length;
      if (length > maxLineBytes) parts = [];
      // Copied, so that a short rest does not keep its whole chunk alive.
      else if (piece.length > 0) parts.push(end === -1 ? Buffer.from(piece) : piece);
      if (end === -1) break;
      yield finish("line", parts, length, maxLineBytes);
      parts = [];
      length = 0;
      start = end + 1;
    }
  }
  if (length > 0) yield finish("partial", parts, length, maxLineBytes);
}

function finish(kind: "line" | "partial", parts: readonly Buffer[], length: number, maxLineBytes: number): ReadLine {
  if (length > maxLineBytes) {
    const error = new HeddleError("process.line-too-long", `a line of ${length} bytes exceeds ${maxLineBytes}`, {
      details: { bytes: length, maxLineBytes },
    });
    return { kind: "lineTooLong", error, bytes: length };
  }
  const text = Buffer.concat(parts).toString("utf8");
  return { kind, text: text.endsWith("\r") ? text.slice(0, -1) : text };
}
