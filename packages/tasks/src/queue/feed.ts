/**
 * One read of the journal for everything a harness follows. Followers of a stream are woken when any process stores an
 * event of it, and read it themselves; a thousand quiet threads cost nothing.
 */
import type { StoredEvent, TaskEventBody } from "@heddle/protocol";
import { isTaskEvent, reasonOf } from "@heddle/protocol";
import type { Journal } from "@heddle/journal";

export type Feed = Awaited<ReturnType<typeof openFeed>>;

const BATCH = 256;
const AGAIN_MS = 1000;

export async function openFeed(journal: Journal, log: (line: string) => void) {
  const closing = new AbortController();
  const waiting = new Map<string, Set<() => void>>();
  const listeners = new Set<(event: StoredEvent<TaskEventBody>) => void>();
  let after = await journal.position();

  function notify(event: StoredEvent): void {
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
          notify(event);
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        log(`the journal could not be read: ${reasonOf(error)}`);
        await pause(AGAIN_MS, signal);
      }
    }
  }

  const reading = read();
  return {
    /** Events after a version, then new ones, until the signal aborts. */
    async *follow(
      stream: string,
      { after: cursor, signal }: { readonly after: number; readonly signal: AbortSignal },
    ): AsyncIterable<StoredEvent> {
      let seen = cursor;
      // Not one combined signal: a thousand tasks follow four streams each, and such signals are large.
      while (!signal.aborted && !closing.signal.aborted) {
        const waiter = wakeOn(waiting, stream, signal);
        try {
          const batch = await journal.read({ stream, after: seen, limit: BATCH });
          for (const event of batch) {
            seen = event.version;
            yield event;
          }
          if (batch.length === 0) await waiter.woken;
        } finally {
          waiter.leave();
        }
      }
    },
    /** After an event of any task was stored. */
    onTask(listener: (event: StoredEvent<TaskEventBody>) => void): Disposable {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
    async [Symbol.asyncDispose](): Promise<void> {
      closing.abort();
      for (const here of waiting.values()) for (const wake of here) wake();
      await reading;
    },
  };
}

/** Registered before reading, so that nothing between the read and the wait is missed. */
function wakeOn(
  waiting: Map<string, Set<() => void>>,
  stream: string,
  signal: AbortSignal,
): { readonly woken: Promise<void>; leave(): void } {
  const { promise: woken, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  const here = waiting.get(stream) ?? new Set();
  waiting.set(stream, here.add(wake));
  signal.addEventListener("abort", wake, { once: true });
  return {
    woken,
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
