/**
 * Whether and when to try again. Pure, but for `pause`: an answer is requested in a limited number of rounds, and in each
 * round the request is sent a limited number of times until an answer begins. Pauses are exponential with jitter; the provider's own
 * Retry-After is obeyed up to five minutes and ends the request beyond that.
 */
import { setTimeout as wait } from "node:timers/promises";
import { HeddleError, toHeddleError, type Failure } from "@heddle/protocol";
import { ProviderError } from "./failure.ts";

/** A provider that asks for more is down for this turn; waiting would look like a hang. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;
const MAX_BACKOFF_MS = 30_000;

export type RetryPlan =
  | {
      readonly kind: "retry";
      /** `request`: the same round goes on. `stream`: the next one begins. */
      readonly level: "request" | "stream";
      readonly delayMs: number;
      readonly error: ProviderError;
    }
  | { readonly kind: "give-up"; readonly error: HeddleError };

export interface RetryState {
  /** Requests so far, of all rounds. */
  readonly attempt: number;
  readonly round: number;
  readonly maxRounds: number;
  /** Requests of this round. */
  readonly sent: number;
  readonly maxSent: number;
  readonly baseMs: number;
  readonly random: () => number;
}

export function planRetry(error: unknown, state: RetryState): RetryPlan {
  if (!(error instanceof ProviderError)) return { kind: "give-up", error: toHeddleError(error) };
  if (!error.isRetryable) return { kind: "give-up", error };
  const { retryAfterMs } = error;
  if (retryAfterMs !== undefined && retryAfterMs > MAX_RETRY_AFTER_MS) {
    const wait = `it asks to wait ${Math.ceil(retryAfterMs / 1000)} s, more than the ${MAX_RETRY_AFTER_MS / 1000} s Heddle waits`;
    return { kind: "give-up", error: reworded(error, `${error.message}; ${wait}`, { retryAfterMs }) };
  }
  const level = error.isBeforeAnswer && state.sent < state.maxSent ? "request" : "stream";
  if (level === "stream" && state.round >= state.maxRounds) {
    const tries = state.attempt === 1 ? "1 try" : `${state.attempt} tries`;
    return {
      kind: "give-up",
      error: reworded(error, `${error.message} (after ${tries})${nextStep(error)}`, { attempts: state.attempt }),
    };
  }
  if (retryAfterMs !== undefined) return { kind: "retry", level, delayMs: retryAfterMs, error };
  if (error.wasStaleSocket) return { kind: "retry", level, delayMs: 0, error };
  return { kind: "retry", level, delayMs: backoff(level === "request" ? state.sent : state.round, state), error };
}

/** What the user can do when waiting did not help. */
function nextStep({ code }: ProviderError): string {
  return code === "provider.unreachable"
    ? "; check that it runs and that its address is right: heddle doctor --online asks every provider"
    : "; try again later, or ask another provider with -m PROVIDER:MODEL";
}

/** Retry-After in seconds or as a date, and the millisecond header some providers send; undefined when none is usable. */
export function readRetryAfter(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  now: number = Date.now(),
): number | undefined {
  const exact = Number(one(headers["retry-after-ms"]) ?? Number.NaN);
  if (Number.isFinite(exact) && exact >= 0) return Math.ceil(exact);
  const value = one(headers["retry-after"])?.trim() ?? "";
  if (/^\d+(\.\d+)?$/.test(value)) return Math.ceil(Number(value) * 1000);
  // Date.parse also takes "-1" for a date; HTTP dates begin with a day.
  const date = /^[A-Z][a-z]+,/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

export function asFailure(error: HeddleError): Failure {
  const { code, message, details } = error;
  return { code, message, ...(Object.keys(details).length === 0 ? {} : { details: { ...details } }) };
}

/** Waits, or fails with the reason of the signal as soon as it aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await wait(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** Between half and all of the doubled pause, so that clients that failed together do not come back together. */
function backoff(failures: number, { baseMs, random }: RetryState): number {
  const full = Math.min(baseMs * 2 ** (failures - 1), MAX_BACKOFF_MS);
  return Math.round(full * (0.5 + random() / 2));
}

function reworded(error: ProviderError, message: string, details: Readonly<Record<string, number>>): HeddleError {
  return new HeddleError(error.code, message, { cause: error.cause, details: { ...error.details, ...details } });
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
