import { expect, test, vi } from "vitest";
import { watchIdle } from "./idle.ts";

const idleAfter = (
  ms: number,
): { readonly since: number; readonly rang: Promise<number> } & ReturnType<typeof watchIdle> => {
  const since = performance.now();
  const rang = Promise.withResolvers<number>();
  const watch = watchIdle(ms, () => rang.resolve(performance.now() - since));
  return { since, rang: rang.promise, ...watch };
};

test("silence rings once the limit is over, counted from the last sign of life", async () => {
  const watch = idleAfter(60);
  let poked = 0;
  const pokes = setInterval(() => {
    poked = performance.now() - watch.since;
    watch.poke();
  }, 10);
  await vi.waitUntil(() => performance.now() - watch.since > 150, { timeout: 5000, interval: 5 });
  clearInterval(pokes);
  expect(await watch.rang).toBeGreaterThanOrEqual(poked + 55);
});

test("a pause that is expected does not count as silence", async () => {
  const watch = idleAfter(40);
  watch.poke(120);
  expect(await watch.rang).toBeGreaterThanOrEqual(155);
});
