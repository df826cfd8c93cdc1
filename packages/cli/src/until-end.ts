/** How a long-lived command waits for its end, and what it says of it. */
import type { Heddle } from "@heddle/agent";
import { EXIT } from "@heddle/protocol";
import { say } from "./print/screen.ts";

/** Called when everything is closed: an end that the store could not take is no success, whatever else went well. */
export function reportUnstoredEnds({ unstoredTurnEnds }: Heddle, exitCode: number, log = say): number {
  if (unstoredTurnEnds === 0) return exitCode;
  const [turns, them] = unstoredTurnEnds === 1 ? ["1 turn", "it"] : [`${unstoredTurnEnds} turns`, "them"];
  log(`the end of ${turns} could not be stored; the next start closes ${them}: free some space, then heddle doctor`);
  return exitCode === EXIT.ok ? EXIT.infrastructure : exitCode;
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    // The timer keeps the process alive while nothing else does.
    const alive = setInterval(() => undefined, 60_000);
    signal.addEventListener(
      "abort",
      () => {
        clearInterval(alive);
        resolve();
      },
      { once: true },
    );
  });
}
