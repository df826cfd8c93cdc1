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
  {
    message: /^(answer thread\/start|thread\/started)$/,
    path: /thread\.gitInfo$/,
    why: "what the repository says is known from the beginning of a thread, not only after its first turn",
  },
  {
    in: /^phases$/,
    message: /^item\/(agentMessage\/delta|started agentMessage)$/,
    why: "deltas add up to the text of their item, also where the model server sends it whole",
  },
  {
    in: /^compact/,
    message: /^thread\/tokenUsage\/updated$/,
    why: "what a request used is told once; an empty thread is compacted without asking a model",
  },
  {
    in: /^resume-while-asked$/,
    kind: "moved",
    message: /^(thread\/goal\/cleared|answer thread\/resume)$/,
    why: "who resumes is asked first what is open, then told of the goal",
  },
  {
    in: /^resume-by-path$/,
    path: /error\.message$/,
    why: "the path of a thread is in Heddle's own home",
  },
];
