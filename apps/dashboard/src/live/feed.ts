/**
 * Streams of the page: one for what happens to tasks and questions anywhere, one more for the thread that is looked at.
 * A page that is hidden for a minute lets them go, with their cursors, because a browser has six connections for all tabs.
 */
import { HeddleApiError, type FollowOptions } from "@heddle/client";
import type { StreamedDelta, StreamedEvent } from "@heddle/protocol/http";
import { heardEvent, lost } from "./link.ts";
import { api, expire } from "./session.ts";

export interface FeedOptions extends Omit<FollowOptions, "signal" | "onReconnect"> {
  readonly onEvent: (event: StreamedEvent) => void;
  readonly onDelta?: (delta: StreamedDelta) => void;
  readonly onLagged?: (deltas: number) => void;
  /** The server has nothing after the cursor any more: begin again from what it says now. */
  readonly onExpired: () => void;
}

const HIDDEN_MS = 60_000;
const TRY_AGAIN_MS = 5_000;

/** Returns what closes it. */
export function openFeed({ onEvent, onDelta, onLagged, onExpired, ...options }: FeedOptions): () => void {
  let cursor = options.after ?? 0;
  let reading: AbortController | undefined;
  let hiding: ReturnType<typeof setTimeout> | undefined;
  const isOfAll = options.threadId === undefined && options.taskId === undefined;
  const read = async (signal: AbortSignal): Promise<void> => {
    for await (const heard of api().follow({ ...options, after: cursor, signal, onReconnect: lost })) {
      if (heard.kind === "event") {
        cursor = isOfAll ? heard.event.position : heard.event.seq;
        heardEvent(heard.event.position);
        onEvent(heard.event);
      } else if (heard.kind === "delta") onDelta?.(heard.delta);
      else if (heard.kind === "lagged") onLagged?.(heard.deltas ?? 0);
    }
  };
  const start = (): void => {
    const own = new AbortController();
    reading = own;
    read(own.signal).catch((error: unknown) => {
      if (own.signal.aborted) return;
      if (error instanceof HeddleApiError && error.status === 401) expire(error.message);
      else if (error instanceof HeddleApiError && error.status === 410) onExpired();
      else setTimeout(() => own.signal.aborted || start(), TRY_AGAIN_MS);
    });
  };
  const stop = (): void => {
    reading?.abort();
    reading = undefined;
  };
  const seen = (): void => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(stop, HIDDEN_MS);
    else if (reading === undefined) start();
  };
  document.addEventListener("visibilitychange", seen);
  start();
  return () => {
    clearTimeout(hiding);
    document.removeEventListener("visibilitychange", seen);
    stop();
  };
}

/** What the page hears of all tasks, for whoever listens. */
const listeners = new Set<(event: StreamedEvent) => void>();

export function listen(heard: (event: StreamedEvent) => void): () => void {
  listeners.add(heard);
  return () => listeners.delete(heard);
}

export function tell(event: StreamedEvent): void {
  for (const heard of listeners) heard(event);
}
