import { expect, test } from "vitest";
import { createWake, type Follower, type Wake } from "./wake.ts";

const ENDLESS = new AbortController().signal;

function openWake(): Wake & { others: number; readonly received: number[] } {
  const state = { others: 1, received: [] as number[] };
  const wake = createWake(
    () => state.others,
    () => state.received.push(state.others),
  );
  return Object.assign(state, wake);
}

/** Whether its wait ends by what is done, as soon as promises are settled. */
async function rises(follower: Follower, act: () => void): Promise<boolean> {
  let hasRisen = false;
  const stop = new AbortController();
  const waiting = follower.wait(stop.signal).then(() => {
    hasRisen = true;
  });
  act();
  await Promise.resolve();
  await Promise.resolve();
  const answer = hasRisen;
  stop.abort();
  await waiting;
  return answer;
}

test("who follows a stream hears of its commits alone, who follows all of every one", async () => {
  const wake = openWake();
  using a = wake.follow("a");
  using all = wake.follow(undefined);
  expect(await rises(a, () => wake.now("b"))).toBe(false);
  expect(await rises(a, () => wake.now("a"))).toBe(true);
  all.mark();
  expect(await rises(all, () => wake.now("b"))).toBe(true);
});

test("a commit after the mark ends the wait at once, one before it does not", async () => {
  const wake = openWake();
  using a = wake.follow("a");
  wake.now("a");
  a.mark();
  expect(await rises(a, () => undefined)).toBe(false);
  wake.now("a");
  expect(await rises(a, () => undefined)).toBe(true);
});

test("commits of others wake everybody, after it was said that they are there", async () => {
  const wake = openWake();
  using a = wake.follow("a");
  using b = wake.follow("b");
  const both = Promise.all([a, b].map(async (follower) => follower.wait(ENDLESS).then(() => wake.received.length)));
  wake.others = 2;
  expect(await both).toEqual([1, 1]);
  expect(wake.received).toEqual([2]);
});

test("who begins to follow is not told of what others did before", async () => {
  const wake = openWake();
  {
    using early = wake.follow("a");
    early.mark();
  }
  wake.others = 2;
  using late = wake.follow("a");
  late.mark();
  const waiting = late.wait(ENDLESS);
  wake.others = 3;
  await waiting;
  expect(wake.received).toEqual([3]);
});

test("an abort and the close end every wait, and a follower that is gone is not woken", async () => {
  const wake = openWake();
  using a = wake.follow("a");
  const gone = wake.follow("a");
  gone[Symbol.dispose]();
  expect(await rises(gone, () => wake.now("a"))).toBe(false);
  a.mark();
  const stop = new AbortController();
  const aborted = a.wait(stop.signal);
  stop.abort();
  await aborted;
  const closed = a.wait(ENDLESS);
  wake.close();
  await closed;
  await a.wait(ENDLESS);
});
