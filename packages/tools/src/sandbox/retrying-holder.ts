/** A holder that could not be finished is made again with a new plan, a few times; then it fails. */
import type { Holder } from "./namespaces.ts";

const MAX_TRIES = 3;

export function retrying(first: Holder, again: () => Promise<Holder>): Holder {
  let current = first;
  let isClosed = false;
  let isTryingAgain = false;

  async function settle(): Holder["ready"] {
    for (let tries = 1; ; tries += 1) {
      try {
        return await current.ready;
      } catch (error) {
        if (isClosed || tries === MAX_TRIES) throw error;
        isTryingAgain = true;
        await current[Symbol.asyncDispose]();
        current = await again();
      }
    }
  }

  const ready = settle();
  // Reported to those who enter or await `ready`; there may be none.
  ready.catch(() => undefined);
  return {
    ready,
    enter: async (argv, options) => {
      await ready;
      return await current.enter(argv, options);
    },
    standBy: () => current.standBy(),
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      await current[Symbol.asyncDispose]();
      if (!isTryingAgain) return;
      // Ends an attempt that was under way, too.
      await ready.catch(() => undefined);
      await current[Symbol.asyncDispose]();
    },
  };
}
