/** What is found in a long thread without reading it, as tests that any back-end can run. */
import { expect, test } from "vitest";
import type { MarkQuery } from "../queries/marks.ts";
import { admitted, completed, created, said } from "./journal.samples.ts";
import type { NewStore } from "./journal.suite.ts";

const reverted = (beforeTurnId: string) => ({ type: "thread.reverted", v: 1, beforeTurnId }) as const;
const asked = (id: string, text: string) => {
  const item = { type: "userMessage" as const, id, content: [{ type: "text" as const, text }] };
  return { type: "item.completed", v: 1, turnId: "t1", item } as const;
};

export function markSuite(newStore: NewStore): void {
  test("14.5: what later events depend on is found by kind, name and range, in order, and rebuilds equal", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const first = { ...admitted("t1"), clientId: "c1" };
    await journal.append({
      stream: "a",
      author: "user:owner",
      events: [created, first, asked("m1", "x"), said("no mark")],
    });
    await journal.append({
      stream: "a",
      author: "user:owner",
      events: [completed("t1"), reverted("t1"), asked("m2", "y")],
    });
    await journal.append({ stream: "b", author: "user:owner", events: [created, reverted("t1")] });
    const versions = (look: Omit<MarkQuery, "stream">) => journal.marks.versions({ stream: "a", ...look });
    const check = async (): Promise<void> => {
      expect(await versions({ kinds: ["thread.reverted", "userMessage"] })).toEqual([3, 6, 7]);
      expect(await versions({ kinds: ["userMessage"], after: 3 })).toEqual([7]);
      expect(await versions({ kinds: ["userMessage"], upTo: 6, newest: 1 })).toEqual([3]);
      expect(await versions({ kinds: ["userMessage"], newest: 1 })).toEqual([7]);
      expect(await versions({ kinds: ["sent"], name: "c1" })).toEqual([2]);
      expect(await versions({ kinds: ["sent"], name: "c2" })).toEqual([]);
      const events = await journal.marks.events({ stream: "a", kinds: ["userMessage"], name: "m1" });
      expect(events.map(({ version, body }) => [version, body])).toEqual([[3, asked("m1", "x")]]);
    };
    await check();
    await journal.rebuildProjections();
    await check();
    await journal.purge({ stream: "a", author: "user:owner", reason: "tidy" });
    expect(await versions({ kinds: ["thread.reverted", "userMessage", "sent"] })).toEqual([]);
  });

  test("14.5: the newest turn is found at any version", async () => {
    await using store = await newStore();
    await using journal = await store.open();
    const events = [created, admitted("t1"), completed("t1"), admitted("t2")];
    await journal.append({ stream: "a", author: "user:owner", events });
    expect(await journal.threads.lastTurn("a")).toMatchObject({ id: "t2", status: "open", endedVersion: undefined });
    expect(await journal.threads.lastTurn("a", 3)).toMatchObject({ id: "t1", status: "completed", endedVersion: 3 });
    expect(await journal.threads.lastTurn("a", 1)).toBeUndefined();
    expect(await journal.threads.lastTurn("b")).toBeUndefined();
  });
}
