import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import type { Journal } from "../journal.ts";
import { openJournal } from "../sqlite/sqlite.ts";

const STREAM = "thread-1";
const begun: EventBody = { type: "thread.created", v: 1, workspace: "/w", origin: "test" };

function named(name: string): EventBody {
  return { type: "thread.named", v: 1, name };
}

async function add(journal: Journal, ...events: EventBody[]): Promise<void> {
  await journal.append({ stream: STREAM, author: "user:owner", events });
}

async function versions(journal: Journal, after = 0, limit?: number): Promise<number[]> {
  const options = { stream: STREAM, after, ...(limit === undefined ? {} : { limit }) };
  return (await journal.read(options)).map(({ version }) => version);
}

/** Two on one home: the second is another connection, as another process has one. */
async function openTwo(): Promise<AsyncDisposable & { readonly one: Journal; readonly other: Journal }> {
  const home = await mkdtemp(join(tmpdir(), "heddle-recent-"));
  const one = await openJournal({ home });
  const other = await openJournal({ home });
  return {
    one,
    other,
    async [Symbol.asyncDispose]() {
      await one[Symbol.asyncDispose]();
      await other[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

test("what this process wrote and read is answered the same by cursor, limit and after more was written", async () => {
  await using two = await openTwo();
  const { one } = two;
  await add(one, begun, named("a"), named("b"));
  expect(await versions(one)).toEqual([1, 2, 3]);
  expect(await versions(one, 1, 1)).toEqual([2]);
  expect(await versions(one, 3)).toEqual([]);
  await add(one, named("c"));
  expect(await versions(one, 3)).toEqual([4]);
  expect(await versions(one, 0, 2)).toEqual([1, 2]);
  expect(await versions(one, 2, 10)).toEqual([3, 4]);
});

test("pages read one after the other add up, and an event is the same object when it is read again", async () => {
  await using two = await openTwo();
  await add(two.other, begun, ...Array.from({ length: 9 }, (_, index) => named(String(index))));
  const { one } = two;
  expect(await versions(one, 0, 4)).toEqual([1, 2, 3, 4]);
  expect(await versions(one, 4, 4)).toEqual([5, 6, 7, 8]);
  expect(await versions(one, 8, 4)).toEqual([9, 10]);
  const [first] = await one.read({ stream: STREAM, after: 0, limit: 1 });
  const [again] = await one.read({ stream: STREAM, after: 0, limit: 1 });
  expect(again).toBe(first);
});

test("what another connection adds is seen at once, in between and at the end", async () => {
  await using two = await openTwo();
  const { one, other } = two;
  await add(one, begun);
  expect(await versions(one)).toEqual([1]);
  await add(other, named("theirs"));
  await add(one, named("ours"));
  expect(await versions(one)).toEqual([1, 2, 3]);
  const names = (await one.read({ stream: STREAM, after: 1 })).map(({ body }) => "name" in body && body.name);
  expect(names).toEqual(["theirs", "ours"]);
});

test("a thread that another connection purged is not read from memory", async () => {
  await using two = await openTwo();
  const { one, other } = two;
  await add(one, begun, named("secret"));
  expect(await versions(one)).toEqual([1, 2]);
  await other.purge({ stream: STREAM, author: "user:owner", reason: "asked" });
  await expect(versions(one)).rejects.toMatchObject({ code: "store.purged" });
});

test("a thread that this process purged is not read from memory", async () => {
  await using two = await openTwo();
  const { one } = two;
  await add(one, begun, named("secret"));
  await one.purge({ stream: STREAM, author: "user:owner", reason: "asked" });
  await expect(versions(one)).rejects.toMatchObject({ code: "store.purged" });
});

test("a stream is proven once, and again after another connection wrote to it", async () => {
  await using two = await openTwo();
  const { one, other } = two;
  await add(one, begun);
  expect(await one.prove(STREAM)).toBeUndefined();
  await add(one, named("ours"));
  expect(await one.prove(STREAM)).toBeUndefined();
  await add(other, named("theirs"));
  expect(await one.prove(STREAM)).toBeUndefined();
  expect(await versions(one)).toEqual([1, 2, 3]);
});

async function newest(journal: Journal, count: number, after = 0): Promise<(number | string)[][]> {
  const enough = new AbortController();
  const found: (number | string)[][] = [];
  for await (const { position, stream, version } of journal.tail({ after, signal: enough.signal })) {
    found.push([position, stream, version]);
    if (found.length === count) break;
  }
  enough.abort();
  return found;
}

test("who follows everything sees what this process and others wrote, in order, from any position", async () => {
  await using two = await openTwo();
  const { one, other } = two;
  await add(one, begun, named("a"));
  await one.append({ stream: "thread-2", author: "user:owner", events: [begun] });
  expect(await newest(one, 3)).toEqual([
    [1, STREAM, 1],
    [2, STREAM, 2],
    [3, "thread-2", 1],
  ]);
  await add(other, named("theirs"));
  await add(one, named("ours"));
  const all = [
    [3, "thread-2", 1],
    [4, STREAM, 3],
    [5, STREAM, 4],
  ];
  expect(await newest(one, 3, 2)).toEqual(all);
  expect(await newest(one, 3, 2)).toEqual(all);
  expect(await newest(one, 1, 4)).toEqual(all.slice(2));
});

test("who follows everything is told of more than is kept, each once", async () => {
  await using two = await openTwo();
  const { one } = two;
  const many = 3000;
  const following = newest(one, many);
  await add(one, begun);
  for (let count = 1; count < many; count += 100) {
    await add(one, ...Array.from({ length: Math.min(100, many - count) }, (_, index) => named(String(count + index))));
  }
  const found = await following;
  expect(found.map(([position]) => position)).toEqual(Array.from({ length: many }, (_, index) => index + 1));
  expect((await newest(one, 10, many - 10)).map(([position]) => position)).toEqual(
    Array.from({ length: 10 }, (_, index) => many - 9 + index),
  );
});

test("who follows everything is not told of a purged thread from memory", async () => {
  await using two = await openTwo();
  const { one } = two;
  await add(one, begun, named("secret"));
  await one.append({ stream: "thread-2", author: "user:owner", events: [begun] });
  await one.purge({ stream: STREAM, author: "user:owner", reason: "asked" });
  const streams = (await newest(one, 2)).map(([, stream]) => stream);
  expect(streams).toEqual(["thread-2", STREAM]);
});
