import { expect, test } from "vitest";
import { created, said, testHome } from "../suite/journal.samples.ts";
import { openJournal } from "../sqlite/sqlite.ts";

const author = "system";

test("appends that come together are all there, in the order of their calls, each stream dense", async () => {
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  const streams = ["a", "b", "c"];
  const appended = await Promise.all(
    Array.from({ length: 30 }, (_, index) =>
      journal.append({ stream: streams[index % 3] ?? "", author, events: [said(`${index}`)] }),
    ),
  );
  const positions = appended.flatMap(({ events }) => events.map(({ position }) => position));
  expect(positions).toEqual(positions.toSorted((one, other) => one - other));
  for (const stream of streams) {
    const versions = (await journal.read({ stream, after: 0 })).map(({ version }) => version);
    expect(versions).toEqual(Array.from({ length: 10 }, (_, index) => index + 1));
  }
  expect((await journal.verify()).damage).toEqual([]);
});

test("one that is refused takes none of the others with it", async () => {
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  const results = await Promise.allSettled([
    journal.append({ stream: "a", author, events: [created] }),
    journal.append({ stream: "a", author, events: [said("late")], expectedVersion: 0 }),
    journal.append({ stream: "b", author, events: [created], key: "k" }),
    journal.append({ stream: "b", author, events: [said("other")], key: "k" }),
    journal.append({ stream: "b", author, events: [created], key: "k" }),
    journal.append({ stream: "a", author, events: [said("last")], expectedVersion: 1 }),
  ]);
  expect(results.map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
  ]);
  const codes = results.map((result) => (result.status === "rejected" ? result.reason.code : undefined));
  expect([codes[1], codes[3]]).toEqual(["store.version-conflict", "store.id-conflict"]);
  expect((await journal.read({ stream: "a", after: 0 })).map(({ body }) => body.type)).toEqual([
    "thread.created",
    "item.completed",
  ]);
  expect(await journal.version("b")).toBe(1);
  expect((await journal.verify()).damage).toEqual([]);
});

test("what is appended before a purge is stored before it", async () => {
  await using home = await testHome();
  await using journal = await openJournal({ home: home.path });
  const created1 = journal.append({ stream: "a", author, events: [created] });
  const said1 = journal.append({ stream: "a", author, events: [said("secret")] });
  const purged = journal.purge({ stream: "a", author, reason: "asked" });
  const later = journal.append({ stream: "a", author, events: [said("too late")] });
  const refused = expect(later).rejects.toMatchObject({ code: "thread.not-found" });
  await Promise.all([created1, said1]);
  expect((await purged).version).toBe(3);
  await refused;
});

test("what was appended and not awaited is stored when the journal closes", async () => {
  await using home = await testHome();
  const journal = await openJournal({ home: home.path });
  const appends = ["x", "y"].map((text) => journal.append({ stream: "a", author, events: [said(text)] }));
  await journal[Symbol.asyncDispose]();
  expect((await Promise.all(appends)).map(({ events }) => events[0]?.version)).toEqual([1, 2]);
});
