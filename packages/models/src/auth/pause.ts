/** Waits, or fails with the reason of the signal as soon as that aborts. */
import { setTimeout as wait } from "node:timers/promises";

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await wait(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}
