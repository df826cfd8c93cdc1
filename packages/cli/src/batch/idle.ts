/** Notices that nothing has happened for a while. One timer, looked at when it rings: a stream of deltas costs nothing. */
export interface IdleWatch extends Disposable {
  /** Something happened. */
  poke(): void;
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
    poke() {
      lastAt = performance.now();
    },
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
