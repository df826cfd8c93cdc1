/**
 * A sandbox that is begun before it is known what for. A door calls this first of all: the holder comes alive on another
 * core while the rest of Heddle is loaded. An entry of its own, so that calling it loads nothing else.
 */
import { startHolder, type HolderProcess, type Network } from "./holder-process.ts";
import { openScratch } from "./scratch.ts";

/** A holder that runs ahead of the plan for it, with the folder it will use. */
export interface PreparedSandbox extends AsyncDisposable {
  /** Hands both over; undefined when they do not fit, or were taken before. */
  take(network: Network, tmpDir: string | undefined): HolderProcess | undefined;
}

/** Starts a holder for the sandbox that will most likely be wanted. Never throws: whoever opens a sandbox meets what is wrong. */
export function prepareSandbox(): PreparedSandbox {
  let holder = attempt(() => {
    const scratch = openScratch();
    return attempt(() => startHolder("none", scratch)) ?? void scratch[Symbol.asyncDispose]();
  });
  return {
    take(network, tmpDir) {
      if (network !== "none" || tmpDir !== undefined) return undefined;
      const taken = holder;
      holder = undefined;
      return taken;
    },
    async [Symbol.asyncDispose]() {
      const left = holder;
      holder = undefined;
      await left?.[Symbol.asyncDispose]();
      await left?.scratch[Symbol.asyncDispose]();
    },
  };
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}
