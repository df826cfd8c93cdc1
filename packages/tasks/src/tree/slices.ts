/** Long work on the main thread in short pieces: disk calls that wait for nothing are several times faster than awaited ones. */
import { setImmediate } from "node:timers/promises";
import { clockMs } from "@heddle/protocol";

/** Other work gets its turn at least this often. */
const SLICE_MS = 10;

export interface Slices {
  /** Cheap: the slice is over. */
  isOver(): boolean;
  /** Lets others run, and throws when the signal has fired. */
  rest(): Promise<void>;
}

export function sliced(signal: AbortSignal): Slices {
  signal.throwIfAborted();
  let end = clockMs() + SLICE_MS;
  return {
    isOver: () => clockMs() >= end,
    async rest() {
      await setImmediate();
      signal.throwIfAborted();
      end = clockMs() + SLICE_MS;
    },
  };
}
