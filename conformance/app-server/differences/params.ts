/** Differences that are meant: around params, what is refused, and what a thread shows of itself. */
import type { Difference } from "../differences.ts";

export const AROUND_PARAMS: readonly Difference[] = [
  {
    in: /^params-refused$/,
    path: /error\.message$/,
    why: "what is not done is refused whatever stands beside it, with what to use instead",
  },
  {
    in: /^ephemeral-metadata$/,
    message: /^(answer thread\/(resume|turns\/list|items\/list)|thread\/goal\/cleared)$/,
    why: "a thread that is not kept can be read and followed as long as it is there",
  },
];
