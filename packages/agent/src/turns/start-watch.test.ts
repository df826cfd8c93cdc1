import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { NoticeText } from "@heddle/protocol";
import { StartWatch } from "./start-watch.ts";

test("12.13: a start that takes too long says once at which step it stands, and what it waits for", async () => {
  const lines: string[] = [];
  const slow = Promise.withResolvers<void>();
  using watch = new StartWatch("first", { slowMs: 20, log: (line) => slow.resolve(void lines.push(line)) });
  watch.step("second");
  // The watch itself holds up no process; something else does.
  const busy = setTimeout(() => undefined, 60_000);
  await slow.promise;
  clearTimeout(busy);
  watch.step("third");
  await sleep(30);
  expect(lines).toEqual([
    expect.stringMatching(
      /^the start has taken 0\.\d s so far and is at the step: second; steps: first 0\.0 s, second 0\.\d s; load .*; waiting for: .*Timeout.*; processes: /,
    ),
  ]);
  const told: NoticeText[] = [];
  watch.tellTo((text) => told.push(text));
  expect(told).toEqual([{ level: "warning", code: "start.slow", message: lines[0] }]);
});

test("12.13: a process that stood still reports it when it continues", () => {
  const told: NoticeText[] = [];
  const watch = new StartWatch("begin", { slowMs: 20 });
  watch.tellTo((text) => told.push(text));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 40);
  watch[Symbol.dispose]();
  watch[Symbol.dispose]();
  expect(told).toEqual([{ level: "warning", code: "start.slow", message: expect.stringContaining("was stopped") }]);
});

test("12.13: what may take its time is not counted, and a start that went well says nothing", async () => {
  const lines: string[] = [];
  const watch = new StartWatch("begin", { slowMs: 1000, log: (line) => lines.push(line) });
  watch.pause();
  await sleep(1100);
  watch.goOn("the rest");
  watch[Symbol.dispose]();
  expect(lines).toEqual([]);
});
