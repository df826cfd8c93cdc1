/**
 * One reading of the journal for everything a harness follows. Whoever follows a stream is woken when something of it was
 * stored, by this process or another, and reads it itself; a thousand quiet threads cost nothing.
 */
import type { StoredEvent, TaskEventBody } from "@heddle/protocol";
import { isTaskEvent } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";

export interface Feed extends AsyncDisposable {
  /** Events after a version, then new ones, until the signal aborts. */
  follow(stream: string, options: { readonly after: number; readonly signal: AbortSignal }): AsyncIterable<StoredEvent>;
  /** After an event of any task was stored. */
  onTask(listener: (event: StoredEvent<TaskEventBody>) => void): Disposable;
}

export interface FeedOptions {
  readonly journal: Journal;
  readonly log: (line: string) => void;
}

const BATCH = 256;
const AGAIN_MS = 1000;

export async function openFeed({ journal, log }: FeedOptions): Promise<Feed> {
  const closing = new AbortController();
  const waiting = new Map<string, Set<() => void>>();
  const listeners = new Set<(event: StoredEvent<TaskEventBody>) => void>();
  let after = await journal.position();

  function tell(event: StoredEvent): void {
    for (const wake of waiting.get(event.stream) ?? []) wake();
    if (!isTaskEvent(event.body)) return;
    for (const listener of listeners) listener({ ...event, body: event.body });
  }

  async function read(): Promise<void> {
    const { signal } = closing;
    while (!signal.aborted) {
      try {
        for await (const event of journal.tail({ after, signal })) {
          after = event.position;
          tell(event);
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        log(`the journal could not be read: ${String(error)}`);
        await pause(AGAIN_MS, signal);
      }
    }
  }

  const reading = read();
  return {
    async *follow(stream, { after: cursor, signal }) {
      let seen = cursor;
      // Not one combined signal: a thousand tasks follow four streams each, and such signals are large.
      while (!signal.aborted && !closing.signal.aborted) {
        const knock = knockAt(waiting, stream, signal);
        try {
          const batch = await journal.read({ stream, after: seen, limit: BATCH });
          for (const event of batch) {
            seen = event.version;
            yield event;
          }
          if (batch.length === 0) await knock.heard;
        } finally {
          knock.leave();
        }
      }
    },
    onTask(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      for (const here of waiting.values()) for (const wake of here) wake();
      await reading;
    },
  };
}

/** Registered before reading, so that nothing between the read and the wait is missed. */
function knockAt(
  waiting: Map<string, Set<() => void>>,
  stream: string,
  signal: AbortSignal,
): { readonly heard: Promise<void>; leave(): void } {
  const { promise: heard, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  const here = waiting.get(stream) ?? new Set();
  waiting.set(stream, here.add(wake));
  signal.addEventListener("abort", wake, { once: true });
  return {
    heard,
    leave() {
      signal.removeEventListener("abort", wake);
      here.delete(wake);
      if (here.size === 0 && waiting.get(stream) === here) waiting.delete(stream);
    },
  };
}

/** Resolves early, and does not reject, when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });
}
