/** Cuts a text to a number of bytes, keeping its beginning and its end, with a mark that says how much is missing. */
import { HeadTail } from "../commands/head-tail.ts";

const MARK_BYTES = 64;

export function fitText(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const room = Math.max(0, maxBytes - MARK_BYTES);
  // Errors and summaries stand at the end more often than at the beginning.
  const kept = new HeadTail(Math.floor(room * 0.4), Math.floor(room * 0.6));
  kept.push(bytes);
  return kept.read().text;
}
