/** Long work on the main thread in short pieces: disk calls that wait for nothing are several times faster than awaited ones. */
import { setImmediate } from "node:timers/promises";
import { clockMs } from "@heddle/protocol";

/** Other work gets its turn at least this often. */
const SLICE_MS = 10;
/** Of some microseconds each, up to a tenth of a millisecond. */
const SHORT_STEPS = 32;

export interface Slices {
  /** After something that takes a millisecond or more. */
  isOver(): boolean;
  /** After something that takes microseconds: the clock is not asked every time. */
  isOverSoon(): boolean;
  /** Lets others run, and throws when the signal has fired. */
  rest(): Promise<void>;
}

export function sliced(signal: AbortSignal): Slices {
  signal.throwIfAborted();
  let end = clockMs() + SLICE_MS;
  let steps = 0;
  return {
    isOver: () => clockMs() >= end,
    isOverSoon: () => (steps = (steps + 1) % SHORT_STEPS) === 0 && clockMs() >= end,
    async rest() {
      await setImmediate();
      signal.throwIfAborted();
      end = clockMs() + SLICE_MS;
    },
  };
}
