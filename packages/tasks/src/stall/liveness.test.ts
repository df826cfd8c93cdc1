import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLiveness } from "./liveness.ts";

async function openFolder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "heddle-liveness-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

test("silence is counted from the last sign of life, whatever kind it was", async () => {
  await using folder = await openFolder();
  let now = 1000;
  const liveness = createLiveness({ folder: folder.path, pids: () => [], now: () => now });
  now += 500;
  expect(liveness.quietMs()).toBe(500);
  now += 500;
  liveness.receive();
  now += 100;
  expect(liveness.quietMs()).toBe(100);
  now += 400;
  expect(liveness.quietMs()).toBe(500);
});

test("92: files that change are a sign of life, however deep they lie", async () => {
  await using folder = await openFolder();
  let now = 0;
  const liveness = createLiveness({ folder: folder.path, pids: () => [], now: () => now });
  now += 1000;
  expect(liveness.quietMs()).toBe(1000);
  await writeFile(join(folder.path, "grown.txt"), "x");
  now += 1000;
  expect(liveness.quietMs()).toBe(0);
  now += 1000;
  expect(liveness.quietMs()).toBe(1000);
});

test("92: processes that come or go are a sign of life", async () => {
  await using folder = await openFolder();
  let now = 0;
  let pids: readonly number[] = [];
  const liveness = createLiveness({ folder: folder.path, pids: () => pids, now: () => now });
  liveness.quietMs();
  now += 1000;
  pids = [process.pid];
  expect(liveness.quietMs()).toBe(0);
});
