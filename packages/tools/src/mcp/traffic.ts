/**
 * Limits what a server may send unasked. Answers always pass; notifications and requests pass up to a rate, more are
 * dropped unread, and a server that keeps flooding is ended.
 */

const WINDOW_MS = 1000;
/** A chatty build server logs some hundred lines a second. */
const MAX_PER_WINDOW = 1000;
const MAX_DROPPED = 20_000;

export type TrafficVerdict = "pass" | "drop" | "flood";

export function createTrafficRule(now: () => number = () => performance.now()): () => TrafficVerdict {
  let windowStart = now();
  let inWindow = 0;
  let dropped = 0;
  return () => {
    const at = now();
    if (at - windowStart >= WINDOW_MS) {
      windowStart = at;
      inWindow = 0;
    }
    inWindow += 1;
    if (inWindow <= MAX_PER_WINDOW) return "pass";
    dropped += 1;
    return dropped > MAX_DROPPED ? "flood" : "drop";
  };
}
