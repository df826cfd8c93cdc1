/**
 * Loaded into a server whose kept memory is measured (`node --expose-gc --import`): at SIGUSR2 it collects its garbage, then says so
 * on the fourth descriptor. What is between two collections depends on when the last one was, and not on the threads.
 */
import { writeSync } from "node:fs";
import { setImmediate as otherWork } from "node:timers/promises";

const TOLD_FD = 3;
/** What a finalizer lets go of is garbage for the next one. */
const TIMES = 3;

process.on("SIGUSR2", () => {
  collect().then(
    () => writeSync(TOLD_FD, "collected\n"),
    () => process.exit(1),
  );
});

async function collect(): Promise<void> {
  for (let time = 0; time < TIMES; time += 1) {
    await otherWork();
    globalThis.gc?.();
  }
}
