/**
 * Ends of turns that the store could not take yet. Each is tried again within a second of room being back, and for a
 * moment more while the process closes; what is not stored by then, the next start closes (`recover.ts`).
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Journal } from "@heddle/journal";
import { clockMs, HeddleError, isHeddleError, toHeddleError } from "@heddle/protocol";
import type { HeddleOptions } from "../heddle.ts";

/** The caller of a single run is told soon that its end cannot be stored. */
const UNATTENDED_MS = 3000;
/** Doors wait for the ends of turns before an engine closes. */
const CLOSING_MS = 1000;
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 1000;

export type PendingEnds = ReturnType<typeof createPendingEnds>;

/** Waits until it is closed; in an unattended run for a few seconds. */
export function createPendingEnds(
  journal: Pick<Journal, "damage">,
  { isUnattended, log = () => undefined }: Pick<HeddleOptions, "isUnattended" | "log">,
) {
  const waiting = new Set<string>();
  const closing = new AbortController();
  let lost = 0;

  async function store<T>(turnId: string, attempt: () => Promise<T>): Promise<T> {
    const givesUpAt = isUnattended ? clockMs() + UNATTENDED_MS : Number.POSITIVE_INFINITY;
    const { signal } = closing;
    for (let failures = 0; ; failures += 1) {
      try {
        const stored = await attempt();
        if (failures > 0) log(`the end of turn ${turnId} is stored`);
        return stored;
      } catch (error) {
        // Failures of the store may pass, unless it is damaged; others do not.
        const mayPass = isHeddleError(error) && error.code.startsWith("store.") && journal.damage === undefined;
        if (!mayPass || signal.aborted || clockMs() > givesUpAt) {
          // When another process has taken the turn, that process stores its end.
          if (!isHeddleError(error) || error.code !== "lease.lost") lost += 1;
          throw error;
        }
        if (failures === 0) log(`the end of turn ${turnId} cannot be stored yet, and is kept: ${error.message}`);
      }
      waiting.add(turnId);
      await delay(Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures), undefined, { signal }).catch(() => undefined);
    }
  }

  return {
    /** How many were given up. */
    get lost(): number {
      return lost;
    },
    /** Stores an end as soon as possible, or throws the reason when it gives up. */
    store: <T>(turnId: string, attempt: () => Promise<T>): Promise<T> =>
      store(turnId, attempt).finally(() => waiting.delete(turnId)),
    /** The error for a running turn whose interrupt could not be recorded. */
    unrecorded(turnId: string, error: unknown): HeddleError {
      const { code, message, details } = toHeddleError(error);
      const what = waiting.has(turnId)
        ? `turn ${turnId} has stopped, and its end is stored as soon as the store takes it`
        : `turn ${turnId} was asked to stop, but that could not be recorded`;
      return new HeddleError(code, `${what}: ${message}`, { cause: error, details });
    },
    close(): void {
      setTimeout(() => closing.abort(), CLOSING_MS).unref();
    },
  };
}
