/** The promises of the journal that only show with several processes, some of them killed. For any back-end. */
import { FAILPOINTS } from "@heddle/protocol/failpoints";
import type { StoredEvent } from "@heddle/protocol";
import { describe, expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import { startAppender } from "./journal.appender.ts";
import { said } from "./journal.samples.ts";
import { collect, ENDLESS, type Backend } from "./journal.suite.ts";

export function processSuite(name: string, { newStore }: Backend): void {
  describe(name, () => {
    test("6. what a killed process was told is stored is there", async () => {
      await using store = await newStore();
      for (const after of [1, 7, 40]) {
        await using appender = startAppender({ store, stream: "a", count: 100_000 });
        await appender.acknowledged(after);
        await appender.kill();
        await using journal = await store.open();
        const stored = new Set((await journal.read({ stream: "a", after: 0 })).map((event) => event.id));
        expect(appender.ids.filter((id) => !stored.has(id))).toEqual([]);
        expect(appender.ids.length).toBeGreaterThanOrEqual(after);
        expect(await journal.verify()).toMatchObject({ damage: [] });
      }
    });

    const points = FAILPOINTS.filter((point) => point.startsWith("journal."));
    test.each(points)("8. after a kill at %s the store opens whole, and continues", async (point) => {
      await using store = await newStore();
      const occurrences = point.includes("checkpoint") || point.includes("migrate") ? [1] : [1, 5];
      for (const occurrence of occurrences) {
        await using appender = startAppender({
          store,
          stream: "a",
          count: 50,
          failpoint: `${point}@${occurrence}=kill`,
        });
        expect(await appender.ended()).toMatchObject({ signal: "SIGKILL" });
        await using journal = await store.open();
        expect(journal.damage).toBeUndefined();
        const stored = new Set((await journal.read({ stream: "a", after: 0 })).map((event) => event.id));
        expect(appender.ids.filter((id) => !stored.has(id))).toEqual([]);
        await journal.append({ stream: "a", author: "system", events: [said("on")] });
        expect(await journal.verify()).toMatchObject({ damage: [] });
      }
    });

    test("V12: 9. ten processes open a new store at once and append to one stream, and none is told of a lock", async () => {
      await using store = await newStore();
      await using stack = new AsyncDisposableStack();
      const appenders = Array.from({ length: 10 }, () => stack.use(startAppender({ store, stream: "a", count: 40 })));
      const ends = await Promise.all(appenders.map((appender) => appender.ended()));
      expect(ends.map((end) => ({ code: end.code, stderr: end.stderr }))).toEqual(
        appenders.map(() => ({ code: 0, stderr: "" })),
      );
      await using journal = await store.open();
      const events = await journal.read({ stream: "a", after: 0 });
      expect(events.map((event) => event.version)).toEqual(Array.from({ length: 400 }, (_, index) => index + 1));
      expect(await journal.verify()).toMatchObject({ events: 400, damage: [], notices: [] });
    });

    test("5. a reader sees every event of other processes once, in order, while they are written", async () => {
      await using store = await newStore();
      await using journal = await store.open();
      await using stack = new AsyncDisposableStack();
      const tailed = collect(journal.tail({ after: 0, signal: ENDLESS }), 300);
      const paged = readInPages(stack.use(await store.open()), 300);
      const appenders = ["a", "b", "c"].map((stream) => stack.use(startAppender({ store, stream, count: 100 })));
      await Promise.all(appenders.map((appender) => appender.ended()));
      const events = await tailed;
      expect(events).toEqual(await journal.read({ after: 0 }));
      // Whoever asks again and again, each time after the last one seen, gets the same: nothing comes in behind its back.
      expect(await paged).toEqual(events);
    });
  });
}

async function readInPages(journal: Journal, count: number): Promise<StoredEvent[]> {
  const seen: StoredEvent[] = [];
  while (seen.length < count) {
    seen.push(...(await journal.read({ after: seen.at(-1)?.position ?? 0, limit: 7 })));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return seen;
}
