import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openJournal } from "@heddle/journal";
import type { EventBody, Item, ItemDelta } from "@heddle/protocol";
import { expect, test } from "vitest";
import { FanOut, type FanOutOptions } from "./fan-out.ts";

const created: EventBody = { type: "thread.created", v: 1, workspace: "/w", origin: "test" };
const item: Item = { type: "agentMessage", id: "i1", text: "" };
const begun: EventBody = { type: "item.started", v: 1, turnId: "t", item };

async function openWorld() {
  const home = await mkdtemp(path.join(tmpdir(), "heddle-fan-out-"));
  const ends = new AsyncDisposableStack();
  ends.defer(() => rm(home, { recursive: true, force: true }));
  const journal = ends.use(await openJournal({ home }));
  const listeners = new Set<(delta: ItemDelta) => void>();
  const heddle: FanOutOptions["heddle"] = {
    journal,
    onDelta(_threadId, listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
  };
  const logged: string[] = [];
  return {
    journal,
    logged,
    open: async (stream?: string) =>
      ends.use(await FanOut.open({ heddle, stream, log: (line) => void logged.push(line) })),
    append: (stream: string, events: readonly EventBody[]) => journal.append({ stream, author: "user:ann", events }),
    say(delta: string, itemId = "i1") {
      for (const listener of listeners) listener({ threadId: "a", turnId: "t", itemId, channel: "text", delta });
    },
    [Symbol.asyncDispose]: () => ends[Symbol.asyncDispose](),
  };
}

test("14.4: a delta that is here before the beginning of its item waits for it, and for everyone who is told of it", async () => {
  await using world = await openWorld();
  const told: string[] = [];
  const fanOut = await world.open("a");
  const listen = (name: string) =>
    fanOut.listen({
      async event({ body }) {
        // Whoever takes its time is not overtaken.
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
        told.push(`${name} ${body.type}`);
      },
      delta: ({ delta }) => void told.push(`${name} ${delta}`),
    });
  listen("x");
  listen("y");
  world.say("he");
  await world.append("a", [created, begun]);
  world.say("llo");
  await fanOut.caughtUp();
  world.say("!");
  expect(told.filter((line) => line.startsWith("x"))).toEqual([
    "x thread.created",
    "x item.started",
    "x he",
    "x llo",
    "x !",
  ]);
  expect(told.filter((line) => line.startsWith("y")).map((line) => line.slice(2))).toEqual([
    "thread.created",
    "item.started",
    "he",
    "llo",
    "!",
  ]);
});

test("14.4: each stream has its own listeners, and one that throws hears the next event all the same", async () => {
  await using world = await openWorld();
  const fanOut = await world.open();
  const [all, own]: [string[], string[]] = [[], []];
  fanOut.listen({
    event({ stream }) {
      all.push(stream);
      throw new Error("a fault of its own");
    },
  });
  const listening = fanOut.listen({ event: ({ stream }) => void own.push(stream) }, "a");
  for (const stream of ["a", "b", "a"]) await world.append(stream, [stream === "b" ? created : begun]);
  await fanOut.caughtUp();
  expect([all, own]).toEqual([
    ["a", "b", "a"],
    ["a", "a"],
  ]);
  expect(world.logged).toHaveLength(3);
  listening[Symbol.dispose]();
  await world.append("a", [begun]);
  await fanOut.caughtUp();
  expect(own).toHaveLength(2);
});

test("14.4: with the deletion of its stream a fan-out has ended, and says so", async () => {
  await using world = await openWorld();
  await world.append("a", [created]);
  const fanOut = await world.open("a");
  const { promise, resolve } = Promise.withResolvers<string>();
  fanOut.listen({ event: () => undefined, ended: resolve });
  await world.journal.purge({ stream: "a", author: "user:ann", reason: "test" });
  expect(await promise).toBe("deleted");
});
