/**
 * A valid token, kept in memory. Of several callers one fetches it and the others wait; it is fetched again shortly before
 * its end, or when it was refused. The fetch is aborted when no caller waits for it any more.
 */
import { isHeddleError } from "@heddle/protocol";

/** A token is fetched again this long before its end, but never before the last quarter of its life. */
const EARLY_MS = 5 * 60_000;

export interface FreshToken {
  readonly token: string;
  /** In milliseconds. */
  readonly expiresAt: number;
}

export interface TokenCache {
  get(signal: AbortSignal): Promise<string>;
  /** Another than the one that was refused, where there is one. */
  replace(refused: string | undefined, signal: AbortSignal): Promise<string>;
}

interface Flight {
  readonly done: Promise<FreshToken>;
  readonly control: AbortController;
  waiting: number;
}

export function createTokenCache(
  fetchToken: (signal: AbortSignal) => Promise<FreshToken>,
  now: () => number = Date.now,
): TokenCache {
  let held: (FreshToken & { readonly renewAt: number }) | undefined;
  let flight: Flight | undefined;

  function begin(): Flight {
    const control = new AbortController();
    const done = fetchToken(control.signal).then((fresh) => {
      const lifeMs = fresh.expiresAt - now();
      held = { ...fresh, renewAt: fresh.expiresAt - Math.min(EARLY_MS, lifeMs / 4) };
      return fresh;
    });
    const own: Flight = { done, control, waiting: 0 };
    const landed = (): void => {
      if (flight === own) flight = undefined;
    };
    done.then(landed, landed);
    return own;
  }

  async function join(signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    if (flight === undefined || flight.control.signal.aborted) flight = begin();
    const own = flight;
    own.waiting += 1;
    try {
      return (await orAborted(own.done, signal)).token;
    } finally {
      own.waiting -= 1;
      if (own.waiting === 0) own.control.abort();
    }
  }

  return {
    async get(signal) {
      if (held !== undefined && now() < held.renewAt) return held.token;
      try {
        return await join(signal);
      } catch (error) {
        // Fetched early: the old token is valid until the issuer answers again.
        if (held !== undefined && now() < held.expiresAt && isHeddleError(error) && !signal.aborted) return held.token;
        throw error;
      }
    },
    async replace(refused, signal) {
      if (held !== undefined && held.token !== refused && now() < held.expiresAt) return held.token;
      held = undefined;
      return join(signal);
    },
  };
}

async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([promise, stopped]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
