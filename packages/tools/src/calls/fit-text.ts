/** Cuts a text to a number of bytes, keeping its beginning and its end, with a mark that says how much is missing. */
const MARK_BYTES = 64;

export function fitText(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const room = Math.max(0, maxBytes - MARK_BYTES);
  // Errors and summaries stand at the end more often than at the beginning.
  const head = wholeCharacters(bytes, 0, Math.floor(room * 0.4));
  const tail = wholeCharacters(bytes, bytes.length - Math.floor(room * 0.6), bytes.length);
  const leftOut = bytes.length - head.length - tail.length;
  return `${head.toString("utf8")}\n[... ${leftOut} bytes left out ...]\n${tail.toString("utf8")}`;
}

/** The part between the two places, without characters the cut went through. */
function wholeCharacters(bytes: Buffer, from: number, to: number): Buffer {
  let start = from;
  let end = to;
  while (start < end && isContinuation(bytes[start])) start += 1;
  while (end > start && end < bytes.length && isContinuation(bytes[end])) end -= 1;
  return bytes.subarray(start, end);
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000;
}
