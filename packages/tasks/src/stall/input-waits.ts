/**
 * For how long processes have waited for input. What others do meanwhile is no sign of life for them: nobody but the one who
 * gives the input can end that wait, so a busy server in the background does not hide a prompt.
 */
import type { ProcessSight } from "@heddle/tools";

export interface InputWaits {
  /** Those who wait for input now; answers who has waited longest, and for how long. */
  see(readers: readonly ProcessSight[]): { readonly reader: ProcessSight; readonly waitedMs: number } | undefined;
}

export function createInputWaits(now: () => number): InputWaits {
  let since = new Map<string, number>();
  return {
    see(readers) {
      const next = new Map<string, number>();
      let longest: { readonly reader: ProcessSight; readonly waitedMs: number } | undefined;
      for (const reader of readers) {
        // Whoever got something has worked on it.
        const name = `${reader.pid}:${reader.startTicks}:${reader.cpuMs}`;
        const from = since.get(name) ?? now();
        next.set(name, from);
        const waitedMs = now() - from;
        if (longest === undefined || waitedMs > longest.waitedMs) longest = { reader, waitedMs };
      }
      since = next;
      return longest;
    },
  };
}
