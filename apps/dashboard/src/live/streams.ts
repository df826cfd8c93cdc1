/**
 * The page's own fetch: every answer is a sign of the server, and a stream that brings no byte for longer than two beats,
 * or that slept with its machine, is broken off so that its reader opens it again from its cursor.
 */
import { heard, lost } from "./link.ts";

/** A beat comes every 15 seconds. */
const SILENCE_MS = 40_000;
/** Hidden for longer, a machine may have slept. */
const NAP_MS = 5_000;

const open = new Set<(why: Error) => void>();

export const watchedFetch: typeof fetch = async (input, init) => {
  let response: Response;
  try {
    response = await fetch(input, init);
  } catch (error) {
    if (init?.signal?.aborted !== true) lost();
    throw error;
  }
  heard();
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (!isStream || response.body === null) return response;
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(watch()), { status, statusText, headers });
};

function watch(): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let cut: (why: Error) => void = () => undefined;
  const done = (): void => {
    clearTimeout(timer);
    open.delete(cut);
  };
  return new TransformStream({
    start(controller) {
      cut = (why) => {
        done();
        controller.error(why);
      };
      open.add(cut);
      timer = setTimeout(cut, SILENCE_MS, new Error("the stream fell silent"));
    },
    transform(chunk, controller) {
      heard();
      clearTimeout(timer);
      timer = setTimeout(cut, SILENCE_MS, new Error("the stream fell silent"));
      controller.enqueue(chunk);
    },
    flush: done,
  });
}

/** Whoever comes back looks at a stream that may be dead without knowing it. */
export function reopenAfterSleep(): () => void {
  let hiddenAt: number | undefined;
  const reopen = (): void => {
    for (const cut of open) cut(new Error("opened again after a pause"));
  };
  const seen = (): void => {
    if (document.hidden) {
      hiddenAt = Date.now();
      return;
    }
    if (hiddenAt !== undefined && Date.now() - hiddenAt > NAP_MS) reopen();
    hiddenAt = undefined;
  };
  const shown = (event: PageTransitionEvent): void => {
    if (event.persisted) reopen();
  };
  document.addEventListener("visibilitychange", seen);
  addEventListener("pageshow", shown);
  addEventListener("online", reopen);
  return () => {
    document.removeEventListener("visibilitychange", seen);
    removeEventListener("pageshow", shown);
    removeEventListener("online", reopen);
  };
}
