/** Lines of a record with where each ends and the hash of everything up to there, so that a later reader can go on from it. */
import { createHash, type Hash } from "node:crypto";

const NEWLINE = 0x0a;

export interface HashedLine {
  /** undefined: it is too long. */
  readonly text: string | undefined;
  /** Bytes up to and with its newline. */
  readonly end: number;
  /** SHA-256 of these bytes, in hex. Of the last line that was read. */
  sha256(): string;
}

/** A last line without newline is still being written, and is left out. Memory is bounded by one line and one piece. */
export async function* hashedLines(
  source: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
): AsyncGenerator<HashedLine, void, undefined> {
  const hash = createHash("sha256");
  /** Where the last whole line ended, once more has been read. */
  let atLine: Hash | undefined;
  let parts: Buffer[] = [];
  let length = 0;
  let end = 0;
  for await (const chunk of source) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let start = 0; start < bytes.length;) {
      const newline = bytes.indexOf(NEWLINE, start);
      const next = newline === -1 ? bytes.length : newline + 1;
      const piece = bytes.subarray(start, next);
      if (newline === -1) atLine ??= hash.copy();
      hash.update(piece);
      end += piece.length;
      length += piece.length;
      if (length > maxLineBytes) parts = [];
      // Copied, so that a short rest does not keep its whole chunk alive.
      else parts.push(newline === -1 ? Buffer.from(piece) : piece);
      start = next;
      if (newline === -1) continue;
      atLine = undefined;
      const text = length > maxLineBytes ? undefined : Buffer.concat(parts).toString("utf8").trimEnd();
      yield { text, end, sha256: () => (atLine ?? hash).copy().digest("hex") };
      parts = [];
      length = 0;
    }
  }
}
