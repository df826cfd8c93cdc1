/**
 * Keeps the whole outputs of commands within the owner's rule: after a turn, where one was kept since this process has looked
 * last. It delays no turn; who closes waits for it.
 */
import { statSync } from "node:fs";
import { blobsFolder, type Journal } from "@heddle/journal";
import { clockMs, toHeddleError } from "@heddle/protocol";
import type { HeddleOptions } from "../heddle.ts";

/** To look at all of them takes a moment; what a minute adds is bounded by the quota of each command. */
const EVERY_MS = 60_000;
/** Of closing. */
const LONGEST_MS = 5_000;

export function createOutputCollector(journal: Journal, options: Pick<HeddleOptions, "home" | "outputRule" | "log">) {
  const { home, outputRule: rule = {}, log } = options;
  let seenMs = Date.now();
  let beganMs = -Infinity;
  let running: Promise<void> | undefined;
  const stop = new AbortController();

  async function collect(): Promise<void> {
    // Of one name the kernel knows: most runs have kept nothing and need no thread for it.
    const found = statSync(blobsFolder(home), { throwIfNoEntry: false });
    if (found === undefined || found.mtimeMs < seenMs) return;
    seenMs = Date.now();
    beganMs = clockMs();
    const { collectBlobs } = await import("@heddle/journal/blobs");
    const given = { home, rule, by: "policy:outputs", nowMs: seenMs, signal: stop.signal } as const;
    const done = await collectBlobs(journal, given);
    if (done.length > 0) log?.(`${done.length} whole outputs of commands were removed by rule`);
  }

  return {
    look(): void {
      if (running !== undefined || clockMs() - beganMs < EVERY_MS) return;
      running = collect()
        .catch((error: unknown) => {
          if (!stop.signal.aborted) log?.(`whole outputs could not be collected: ${toHeddleError(error).message}`);
        })
        .finally(() => (running = undefined));
    },
    async [Symbol.asyncDispose](): Promise<void> {
      const timer = setTimeout(() => stop.abort(), LONGEST_MS);
      await running;
      clearTimeout(timer);
    },
  };
}
