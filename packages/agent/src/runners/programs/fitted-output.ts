import { HeadTail } from "@heddle/tools/lines";

/** As much as an item of Heddle's own commands shows; the whole is in the transcript. */
const HEAD_BYTES = 32 * 1024;
const TAIL_BYTES = 32 * 1024;

/** Output of a command, cut in the middle where it is too long for an item. */
export function fittedOutput(whole: string): { readonly output: string; readonly truncatedBytes?: number } {
  if (whole.length <= HEAD_BYTES) return { output: whole };
  const kept = new HeadTail(HEAD_BYTES, TAIL_BYTES);
  kept.push(Buffer.from(whole));
  const { text: output, truncatedBytes } = kept.read();
  return truncatedBytes === 0 ? { output } : { output, truncatedBytes };
}
