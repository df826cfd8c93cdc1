/**
 * The time of one call: so long without a sign of life, so long in all. It stands still while a person is asked on the
 * server's behalf, because nobody can say how long that takes.
 */
export interface CallClock extends Disposable {
  /** Aborts when the time is up; its reason is the failure. */
  readonly signal: AbortSignal;
  /** The server has said something. */
  heard(): void;
  /** Until it is disposed of, no time passes. */
  pause(): Disposable;
}

/** By this the server's doubtful state is told from other failures. */
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
    heard() {
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
