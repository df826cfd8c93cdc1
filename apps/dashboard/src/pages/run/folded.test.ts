import { expect, test } from "vitest";
import { checkpoint, grow, NOT_GROWN, withGrown } from "./folded.ts";

const textOf = (grown: Parameters<typeof checkpoint>[0]): string => grown.stored + grown.live;

test("with offsets a checkpoint takes the place of exactly what was heard of it, also of text that repeats itself", () => {
  const heard = grow(grow(NOT_GROWN, "aaaa", 4), "aaaa", 8);
  // The first eight of twelve: four that were not heard, and four that were.
  const stored = checkpoint(heard, "aaaaaaaa", 0);
  expect(stored).toMatchObject({ stored: "aaaaaaaa", live: "aaaa", liveFrom: 8 });
  expect(textOf(checkpoint(stored, "aaaa", 8))).toBe("a".repeat(12));
  expect(checkpoint(stored, "aaaa", 8)).toMatchObject({ live: "" });
});

test("without offsets the overlap is found by comparing, as with what older servers stored", () => {
  const heard = grow(NOT_GROWN, "lo wo");
  expect(textOf(grow(checkpoint(heard, "hello wo"), "rld"))).toBe("hello world");
});

test("what comes before the first piece that was heard is not lost when its checkpoint comes later", () => {
  const heard = grow(NOT_GROWN, "world", 6);
  expect(textOf(checkpoint(heard, "hello ", 0))).toBe("hello world");
});

test("only so much is kept of what runs, and its newest part stays", () => {
  const long = grow(grow(NOT_GROWN, "x".repeat(999_999), 0), "yz", 999_999);
  expect(long).toMatchObject({ droppedChars: 1, liveFrom: 1 });
  const item = { type: "agentMessage", id: "i", text: "" } as const;
  expect(withGrown(item, long)).toMatchObject({ text: expect.stringMatching(/xyz$/) });
});
