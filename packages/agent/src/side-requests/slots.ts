/** Limits how many run at once: others wait for a slot, and give up when too many wait. */
export interface Slots {
  take(signal: AbortSignal): Promise<Disposable | undefined>;
}

export function createSlots(limits: { readonly running: number; readonly waiting: number }): Slots {
  const waiting: ((slot: Disposable | undefined) => void)[] = [];
  let running = 0;

  function slot(): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]() {
        if (!isHeld) return;
        isHeld = false;
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next(slot());
      },
    };
  }

  return {
    take(signal) {
      if (signal.aborted) return Promise.resolve(undefined);
      if (running < limits.running) {
        running += 1;
        return Promise.resolve(slot());
      }
      if (waiting.length >= limits.waiting) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        const take = (given: Disposable | undefined): void => {
          signal.removeEventListener("abort", leave);
          resolve(given);
        };
        const leave = (): void => {
          const at = waiting.indexOf(take);
          if (at >= 0) waiting.splice(at, 1);
          resolve(undefined);
        };
        waiting.push(take);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
  };
}
