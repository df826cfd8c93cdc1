/**
 * Tells when the one thread of the server stood still: a beat that comes late says for how long nothing else ran either.
 * Nothing is lost by it (what is owned is owned by a process, not until a time), but everybody waited, and whoever runs the
 * server should know why.
 */

export interface WatchdogOptions {
  readonly log: (line: string) => void;
}

/** The reported length is short by this much at most. */
const BEAT_MS = 250;
/** Later than this is no busy machine any more. */
const STOOD_STILL_MS = 1_000;

export function watchLoop({ log }: WatchdogOptions): Disposable {
  let beatenAt = performance.now();
  let used = process.cpuUsage();
  const beating = setInterval(() => {
    const now = performance.now();
    const lateMs = now - beatenAt - BEAT_MS;
    const { user, system } = process.cpuUsage(used);
    beatenAt = now;
    used = process.cpuUsage();
    if (lateMs < STOOD_STILL_MS) return;
    // Without work of its own it waited for something outside: a disk, a stopped process, a machine that slept.
    const workedMs = Math.min(lateMs, (user + system) / 1_000);
    log(`watchdog: the server was blocked for ${seconds(lateMs)}, ${seconds(workedMs)} of it at work`);
  }, BEAT_MS);
  beating.unref();
  return { [Symbol.dispose]: () => clearInterval(beating) };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
