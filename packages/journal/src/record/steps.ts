/**
 * Work in steps: done at once for short text, and in turns with everything else for long text. A step takes a
 * millisecond or two.
 */
import { clockMs } from "@heddle/protocol";
import { breathe } from "./breathe.ts";

/** Yields where it may be interrupted. */
export type Steps<T> = Generator<undefined, T, undefined>;

export const STEP_CHARS = 64 * 1024;
const MAX_AT_A_TIME_MS = 10;

export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  let begun = clockMs();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (clockMs() - begun < MAX_AT_A_TIME_MS) continue;
    await breathe();
    begun = clockMs();
  }
}
