/** Notices that nothing has happened for a while. One timer, looked at when it rings: a stream of deltas costs nothing. */
export interface IdleWatch extends Disposable {
  /** Something happened; or, with a time, silence is expected for so long. */
  poke(aheadMs?: number): void;
}

export function watchIdle(limitMs: number | undefined, onIdle: () => void): IdleWatch {
  if (limitMs === undefined) return { poke: () => undefined, [Symbol.dispose]: () => undefined };
  let lastAt = performance.now();
  let timer = setTimeout(look, limitMs);
  function look(): void {
    const left = limitMs === undefined ? 0 : lastAt + limitMs - performance.now();
    if (left <= 0) onIdle();
    else timer = setTimeout(look, Math.ceil(left));
  }
  return {
    poke(aheadMs = 0) {
      lastAt = performance.now() + aheadMs;
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
