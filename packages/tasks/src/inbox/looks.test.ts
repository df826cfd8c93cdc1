import { expect, test } from "vitest";
import { eventually } from "../../test/test-store.ts";
import type { FileEntry } from "./inbox-folder.ts";
import { createLooks } from "./looks.ts";

const SETTLE_MS = 20;

function entry(path: string, more: Partial<FileEntry> = {}): FileEntry {
  return { path, kind: "file", sizeBytes: 5, modifiedAt: 1, arrivedAt: 1, identity: path, ...more };
}

/** Looks again until something settles. */
function settled(looks: ReturnType<typeof createLooks>, entries: readonly FileEntry[]): Promise<readonly FileEntry[]> {
  return eventually("something settles", () => {
    const found = looks.look(entries);
    return found.length > 0 ? found : undefined;
  });
}

test("72, F42: a file settles when size, time and identity stay; a late time begins it anew", async () => {
  const looks = createLooks(SETTLE_MS);
  for (const more of [
    {},
    { sizeBytes: 6 },
    { sizeBytes: 6, modifiedAt: 2 },
    { sizeBytes: 6, modifiedAt: 2, identity: "other" },
  ]) {
    expect(looks.look([entry("a.md", more)])).toEqual([]);
    expect(looks.nextLook()).toBeGreaterThan(performance.now() - 5);
  }
  const last = entry("a.md", { sizeBytes: 6, modifiedAt: 2, identity: "other" });
  expect(await settled(looks, [last])).toEqual([last]);
});

test("62: files keep the order in which they were seen, then that of their arrival, then 9 before 10", async () => {
  const looks = createLooks(SETTLE_MS);
  const early = entry("z.md", { arrivedAt: 9 });
  looks.look([early]);
  const later = [entry("10.md", { arrivedAt: 5 }), entry("9.md", { arrivedAt: 5 }), entry("8.md", { arrivedAt: 7 })];
  const all = [...later, early];
  looks.look(all);
  const order = await eventually("all settle", () => {
    const found = looks.look(all);
    return found.length === 4 ? found.map(({ path }) => path) : undefined;
  });
  expect(order).toEqual(["z.md", "9.md", "10.md", "8.md"]);
});

test("what is put off is not looked at before its time, and what is gone is forgotten", async () => {
  const looks = createLooks(SETTLE_MS);
  const one = entry("a.md");
  await settled(looks, [one]);
  looks.putOff("a.md", 60_000);
  expect(looks.look([one])).toEqual([]);
  expect(looks.nextLook()).toBeGreaterThan(performance.now() + 50_000);
  looks.look([]);
  expect(looks.nextLook()).toBeUndefined();
});
