/**
 * The time limits of one call: between signs of activity, and in total. They stop while the user answers a question of
 * the server.
 */
export interface CallClock extends Disposable {
  /** Aborts when the time is up; its reason is the failure. */
  readonly signal: AbortSignal;
  /** The server has sent something. */
  sawActivity(): void;
  /** Until it is disposed of, no time passes. */
  pause(): Disposable;
}

/** The code that marks the server as doubtful. */
const TIMED_OUT = "REQUEST_TIMEOUT";

export function startCallClock(limits: { readonly timeoutMs: number; readonly maxTotalMs: number }): CallClock {
  const control = new AbortController();
  let leftMs = limits.maxTotalMs;
  let startedAt = performance.now();
  let pauses = 0;
  let timer: NodeJS.Timeout | undefined;

  const up = (): void => control.abort(Object.assign(new Error("the request timed out"), { code: TIMED_OUT }));

  function stop(): void {
    clearTimeout(timer);
    leftMs -= performance.now() - startedAt;
  }

  function go(): void {
    startedAt = performance.now();
    timer = setTimeout(up, Math.max(0, Math.min(limits.timeoutMs, leftMs)));
  }

  go();
  return {
    signal: control.signal,
    sawActivity() {
      if (pauses > 0) return;
      stop();
      go();
    },
    pause() {
      if (pauses === 0) stop();
      pauses += 1;
      let isOver = false;
      return {
        [Symbol.dispose]() {
          if (isOver) return;
          isOver = true;
          pauses -= 1;
          if (pauses === 0) go();
        },
      };
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
