/**
 * A login by device code: the user enters a short code on any device, and Heddle asks until that has happened. The code that
 * opens something never leaves this process.
 */
import { HeddleError } from "@heddle/protocol";
import { pause } from "../requests/retry.ts";

export const DEVICE_LIFETIME_MS = 15 * 60_000;
export const SLOW_DOWN_MS = 5_000;

export interface Clock {
  readonly now: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const REAL_CLOCK: Clock = { now: Date.now, sleep: pause };

interface DeviceOptions {
  readonly clock?: Clock | undefined;
  readonly signal: AbortSignal;
  readonly lifetimeMs: number;
  readonly intervalMs: number;
}

/** What the login grants, or the interval after which to ask again. */
export type Polled<T> = { readonly granted: T } | { readonly intervalMs: number };

/** Asks until the login is granted, the signal aborts, or `login.expired`. */
export async function awaitDevice<T>(
  ask: (intervalMs: number) => Promise<Polled<T>>,
  { clock = REAL_CLOCK, signal, lifetimeMs, intervalMs: firstMs }: DeviceOptions,
): Promise<T> {
  const deadline = clock.now() + lifetimeMs;
  let intervalMs = firstMs;
  for (;;) {
    if (clock.now() + intervalMs > deadline) throw codeExpired();
    await clock.sleep(intervalMs, signal);
    const answer = await ask(intervalMs).catch((error: unknown) => {
      // The network may be down for a moment.
      if (error instanceof HeddleError && error.code === "provider.unreachable") return { intervalMs };
      throw error;
    });
    if ("granted" in answer) return answer.granted;
    ({ intervalMs } = answer);
  }
}

export function codeExpired(): HeddleError {
  return new HeddleError("login.expired", "the code was not entered in time; log in again");
}
