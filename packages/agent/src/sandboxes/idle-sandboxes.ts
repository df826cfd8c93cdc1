/**
 * Closes the sandboxes of threads that nobody works in: those that have waited longest when there are too many, and each
 * when it has waited for a while. The next turn of such a thread opens a new one. A server with thousands of threads holds
 * processes for a handful.
 *
 *   worked in ─▶ idle ─▶ worked in
 *                  └──▶ closed          too many, or too long
 */
import { clockMs } from "@heddle/protocol";

export interface IdleLimits {
  readonly count?: number | undefined;
  readonly ms?: number | undefined;
}

/** Users work in two or three threads at a time. */
const DEFAULT_COUNT = 8;
const DEFAULT_MS = 300_000;

/** `close` is called for one thread at a time; `busy`: something still runs there, and it is called again later. */
export function createIdleSandboxes(
  { count = DEFAULT_COUNT, ms = DEFAULT_MS }: IdleLimits,
  close: (threadId: string) => Promise<"closed" | "busy">,
) {
  const waiting = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let closing = Promise.resolve();

  function rest(threadId: string): void {
    waiting.delete(threadId);
    closing = closing.then(async () => {
      if ((await close(threadId)) === "closed" || waiting.has(threadId)) return;
      // Its number alone would close it again at once: the next try is after another wait.
      waiting.set(threadId, clockMs());
      schedule();
    });
    closing = closing.catch(() => undefined);
  }

  function wait(threadId: string): void {
    waiting.delete(threadId);
    waiting.set(threadId, clockMs());
    const [oldest] = waiting.keys();
    if (waiting.size > count && oldest !== undefined) rest(oldest);
    schedule();
  }

  function schedule(): void {
    const [first] = waiting.values();
    clearTimeout(timer);
    timer = first === undefined ? undefined : setTimeout(closeOld, Math.max(0, first + ms - clockMs())).unref();
  }

  function closeOld(): void {
    for (const [threadId, since] of waiting) if (since + ms <= clockMs()) rest(threadId);
    schedule();
  }

  return {
    wait,
    /** Closes it now. */
    rest,
    forget(threadId: string): void {
      waiting.delete(threadId);
    },
    [Symbol.dispose](): void {
      clearTimeout(timer);
      waiting.clear();
    },
  };
}
