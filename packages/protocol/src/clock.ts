/**
 * Time that only goes forward, in ms, for measuring and deadlines. In Node by `hrtime`: the first use of `performance` loads
 * a module that nothing else on the way to a first request needs.
 */
export const clockMs: () => number =
  typeof process === "object" && typeof process.hrtime === "function" ? byHrtime : () => performance.now();

function byHrtime(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
