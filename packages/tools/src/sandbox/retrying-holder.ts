/** A holder that could not be finished is made again, with a new plan, a few times; then its failure stands. */
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
  // Whoever enters or asks is told; nobody may do either.
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
      // A try that was under way when this began is ended too.
      await ready.catch(() => undefined);
      await current[Symbol.asyncDispose]();
    },
  };
}
