/**
 * Streams of the page: one for what happens to tasks and questions anywhere, one more for the thread that is looked at.
 * A browser has six connections for all tabs: a page that is hidden lets its streams go after a minute, or as soon as
 * another one is looked at, and keeps their cursors.
 */
import { HeddleApiError, type FollowOptions } from "@heddle/client";
import type { StreamedDelta, StreamedEvent } from "@heddle/protocol/http";
import { heardEvent, lost } from "./link.ts";
import { api, expire } from "./session.ts";
import { createStore } from "./store.ts";

export interface FeedOptions extends Omit<FollowOptions, "signal" | "onReconnect"> {
  readonly onEvent: (event: StreamedEvent) => void;
  readonly onDelta?: (delta: StreamedDelta) => void;
  readonly onLagged?: (deltas: number) => void;
  /** The server has nothing after the cursor any more: begin again from what it says now, after the cursor returned. */
  readonly onExpired: () => Promise<number>;
}

/** Nobody looks, and the streams are closed. */
export const paused = createStore(false);

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
    const again = (): void => {
      if (!own.signal.aborted) start();
    };
    read(own.signal).catch((error: unknown) => {
      if (own.signal.aborted) return;
      if (error instanceof HeddleApiError && error.status === 401) expire(error.message);
      else if (error instanceof HeddleApiError && error.status === 410)
        onExpired().then(
          (after) => {
            cursor = after;
            again();
          },
          () => setTimeout(again, TRY_AGAIN_MS),
        );
      else setTimeout(again, TRY_AGAIN_MS);
    });
  };
  const stop = (): void => {
    reading?.abort();
    reading = undefined;
  };
  const pause = (): void => {
    if (!document.hidden) return;
    stop();
    paused.set(true);
  };
  const show = (): void => {
    tabs.postMessage(LOOKED_AT);
    paused.set(false);
    if (reading === undefined) start();
  };
  const seen = (): void => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(pause, HIDDEN_MS);
    else show();
  };
  document.addEventListener("visibilitychange", seen);
  tabs.addEventListener("message", pause);
  // One that was opened behind another listens when it is shown.
  if (document.hidden) pause();
  else show();
  return () => {
    clearTimeout(hiding);
    document.removeEventListener("visibilitychange", seen);
    tabs.removeEventListener("message", pause);
    stop();
  };
}

/** Of this origin, in this browser. */
const tabs = new BroadcastChannel("heddle");
const LOOKED_AT = "looked at";

/** What the page hears of all tasks, for whoever listens. */
const listeners = new Set<(event: StreamedEvent) => void>();

export function listen(heard: (event: StreamedEvent) => void): () => void {
  listeners.add(heard);
  return () => listeners.delete(heard);
}

export function tell(event: StreamedEvent): void {
  for (const heard of listeners) heard(event);
}
