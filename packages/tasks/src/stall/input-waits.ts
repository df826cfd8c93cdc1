/**
 * For how long processes have waited for input. What others do meanwhile is no sign of life for them: nobody but the one who
 * gives the input can end that wait, so a busy server in the background does not hide a prompt.
 */
import type { ProcessSight } from "@heddle/tools";

export interface InputWaits {
  /** The processes that wait for input now; returns the one that has waited longest. */
  see(readers: readonly ProcessSight[]): { readonly reader: ProcessSight; readonly waitedMs: number } | undefined;
}

export function createInputWaits(now: () => number): InputWaits {
  let since = new Map<string, number>();
  return {
    see(readers) {
      const next = new Map<string, number>();
      let longest: { readonly reader: ProcessSight; readonly waitedMs: number } | undefined;
      for (const reader of readers) {
        // A process that got input has used CPU time since.
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
