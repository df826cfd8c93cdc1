import { expect, test } from "vitest";
import { MemoryChannel } from "../../test/memory-channel.ts";
import { Outbox, type Message } from "./outbox.ts";

const LIMITS = { maxDeltaChars: 2_000, maxChars: 20_000 };

function delta(text: string, itemId = "a"): Message {
  return { method: "item/agentMessage/delta", params: { itemId, delta: text }, emittedAtMs: 1 };
}

function note(text: string): Message {
  return { method: "item/completed", params: { text }, emittedAtMs: 1 };
}

function openOutbox(room: number) {
  const channel = new MemoryChannel();
  channel.room = room;
  let overflows = 0;
  const outbox = new Outbox(channel, () => (overflows += 1), LIMITS);
  channel.open({
    onMessage: () => undefined,
    onTooLong: () => undefined,
    onDrain: () => outbox.drained(),
    onEnd: () => undefined,
    onClose: () => undefined,
  });
  return { channel, outbox, overflows: () => overflows };
}

test("a reader that keeps up gets everything as it comes", () => {
  const { channel, outbox } = openOutbox(Number.POSITIVE_INFINITY);
  outbox.delta(delta("one"));
  outbox.delta(delta("two"));
  outbox.notification(note("end"));
  expect(channel.sent).toEqual([delta("one"), delta("two"), note("end")]);
});

test("deltas that wait are joined, item by item, and keep their order among the others", () => {
  const { channel, outbox } = openOutbox(1);
  outbox.delta(delta("first"));
  for (const text of ["a", "b", "c"]) outbox.delta(delta(text));
  outbox.delta(delta("other", "b"));
  outbox.notification(note("end"));
  outbox.delta(delta("late"));
  expect(channel.sent).toEqual([delta("first")]);
  channel.drains();
  expect(channel.sent.slice(1)).toEqual([delta("abc"), delta("other", "b"), note("end"), delta("late")]);
  expect(outbox.isEmpty).toBe(true);
});

test("what a reader far behind loses is counted on the next notification it gets", () => {
  const { channel, outbox } = openOutbox(1);
  outbox.notification(note("fills the reader"));
  for (let count = 0; count < 100; count += 1) outbox.delta(delta("x".repeat(100)));
  outbox.notification(note("end"));
  channel.drains();
  const lagged = channel.sent.filter(
    (message) => typeof message === "object" && message !== null && "lagged" in message,
  );
  expect(lagged).toHaveLength(1);
  const kept = channel.sent.flatMap((message) => {
    const { params } = message as Message;
    return typeof params["delta"] === "string" ? [params["delta"].length] : [];
  });
  const sum = kept.reduce((total, length) => total + length, 0);
  const [mark] = lagged as { readonly lagged: { readonly droppedDeltas: number; readonly droppedChars: number } }[];
  expect(mark?.lagged.droppedChars).toBe(100 * 100 - sum);
  expect(mark?.lagged.droppedDeltas).toBe((100 * 100 - sum) / 100);
  expect(channel.sent.at(-1)).toMatchObject(note("end"));
});

test("it sends only as long as there is room, and goes on where it stopped", () => {
  const { channel, outbox } = openOutbox(1);
  for (const text of ["1", "2", "3", "4"]) outbox.notification(note(text));
  channel.drains(2);
  expect(channel.sent).toHaveLength(3);
  channel.drains();
  expect(channel.sent.map((message) => (message as Message).params["text"])).toEqual(["1", "2", "3", "4"]);
});

test("what may not be dropped ends the connection when it is too much", () => {
  const { outbox, overflows } = openOutbox(1);
  for (let count = 0; count < 10; count += 1) outbox.text(JSON.stringify("x".repeat(1_500)));
  expect(overflows()).toBe(0);
  for (let count = 0; count < 10; count += 1) outbox.text(JSON.stringify("x".repeat(1_500)));
  expect(overflows()).toBeGreaterThan(0);
});
