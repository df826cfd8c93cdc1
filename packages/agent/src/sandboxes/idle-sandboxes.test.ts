import { expect, test } from "vitest";
import { createIdleSandboxes } from "./idle-sandboxes.ts";

function closer(): {
  closed: string[];
  close: (threadId: string) => Promise<"closed" | "busy">;
  settled: () => Promise<void>;
} {
  const closed: string[] = [];
  return {
    closed,
    close: async (threadId) => {
      closed.push(threadId);
      return "closed";
    },
    // One more than a closing takes.
    settled: () => new Promise((resolve) => void setImmediate(resolve)),
  };
}

test("12.10: the ones that have waited longest are closed when there are too many", async () => {
  const { closed, close, settled } = closer();
  using idle = createIdleSandboxes({ count: 2 }, close);
  for (const threadId of ["a", "b", "a", "c", "d"]) idle.wait(threadId);
  await settled();
  expect(closed).toEqual(["b", "a"]);
});

test("12.10: one that is worked in again is not closed", async () => {
  const { closed, close, settled } = closer();
  using idle = createIdleSandboxes({ count: 1 }, close);
  idle.wait("a");
  idle.forget("a");
  idle.wait("b");
  await settled();
  expect(closed).toEqual([]);
});

test("12.10: each is closed when it has waited for long enough", async () => {
  const asked = Promise.withResolvers<string>();
  using idle = createIdleSandboxes({ ms: 1 }, async (threadId) => {
    asked.resolve(threadId);
    return "closed";
  });
  idle.wait("a");
  expect(await asked.promise).toBe("a");
});

test("12.10: more of them than may wait, all at work, are not asked without end", async () => {
  let asked = 0;
  using idle = createIdleSandboxes({ count: 1 }, async () => {
    asked += 1;
    return "busy";
  });
  for (const threadId of ["a", "b", "c", "d"]) idle.wait(threadId);
  await new Promise((resolve) => void setImmediate(resolve));
  expect(asked).toBe(3);
});

test("12.10: one in which something runs stays, and is asked about again", async () => {
  const answers: ("busy" | "closed")[] = ["busy", "busy", "closed"];
  const over = Promise.withResolvers<void>();
  using idle = createIdleSandboxes({ ms: 1 }, async () => {
    const answer = answers.shift() ?? "closed";
    if (answers.length === 0) over.resolve();
    return answer;
  });
  idle.wait("a");
  await over.promise;
  expect(answers).toEqual([]);
});
