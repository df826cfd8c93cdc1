/**
 * Lets long work take turns with everything else: whatever processes a long text waits here first and gets a turn of
 * the event loop of its own, so that connections, timers and other threads are served in between.
 */
import type { EventBody, StoredEvent } from "@heddle/protocol";

/** Processing this much takes about a millisecond; the longest steps (8 MB at once) take some tens. */
export const LONG_CHARS = 64 * 1024;

let last: Promise<unknown> = Promise.resolve();

/** Resolves in a turn of the event loop of its own. */
export async function breathe(): Promise<void> {
  const mine = last.then(
    () =>
      new Promise((resolve) => {
        setImmediate(resolve);
      }),
  );
  last = mine;
  await mine;
}

/** Measured where bodies are made from text. */
const longBodies = new WeakSet<EventBody>();

export function measured(body: EventBody, chars: number): EventBody {
  if (chars > LONG_CHARS) longBodies.add(body);
  return body;
}

export function isLong(body: EventBody): boolean {
  return longBodies.has(body);
}

/** Of forgotten streams long events are read without waiting for a turn. */
const MAX_STREAMS = 1_000;

/** Where long events are, as far as this process has seen: readers wait for a turn before they read one. */
export class LongEvents {
  readonly #versions = new Map<string, number>();
  #position = 0;

  met(events: readonly StoredEvent[]): void {
    for (const { stream, version, position, body } of events) {
      if (!isLong(body)) continue;
      this.#position = Math.max(this.#position, position);
      const known = this.#versions.get(stream) ?? 0;
      this.#versions.delete(stream);
      this.#versions.set(stream, Math.max(known, version));
      const [oldest] = this.#versions.size > MAX_STREAMS ? this.#versions.keys() : [];
      if (oldest !== undefined) this.#versions.delete(oldest);
    }
  }

  /** Whether there may be one after this version of a stream, or this position of the whole journal. */
  isAhead({ stream, after }: { readonly stream?: string | undefined; readonly after: number }): boolean {
    return after < (stream === undefined ? this.#position : (this.#versions.get(stream) ?? 0));
  }
}
