import { expect, test } from "vitest";
import type { MarkQueries } from "@heddle/journal";
import type { TaskBaseline, TaskEventBody } from "@heddle/protocol";
import { thisHolder } from "@heddle/agent";
import { openTestStore } from "../../test/test-store.ts";
import { readPast } from "./past.ts";

const attempt = 1;
const baseline: TaskBaseline = { takenAt: 1, folder: "/tmp/work", tests: {}, boxes: {}, passed: [] };
const usage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteInputTokens: 0,
  outputTokens: 0,
  reasoningOutputTokens: 0,
};

function round(number: number): readonly TaskEventBody[] {
  return [
    { type: "task.prompted", v: 1, attempt, round: number, clientId: `c.${number}`, why: "first", text: "do it" },
    { type: "task.turn-ended", v: 1, attempt, round: number, turnId: "t", status: "completed", usage, durationMs: 1 },
  ];
}

test("14.5: where a task stands is told from a few marked events, however long its stream is", async () => {
  await using store = await openTestStore();
  const prepared = { type: "task.prepared", v: 1, attempt, threadId: "thread", folder: "/tmp/work", baseline } as const;
  const id = await store.happen([{ type: "task.taken", v: 1, attempt, holder: thisHolder() }, prepared]);
  for (let number = 1; number <= 500; number += 1) await store.happen(round(number), { id });
  await store.happen([{ type: "task.claimed", v: 1, attempt, by: "report", summary: "done" }], { id });
  const checking = { type: "task.checking", v: 1, attempt, name: "x", room: "work" } as const;
  await store.happen(
    Array.from({ length: 500 }, () => checking),
    { id },
  );
  await store.happen([{ type: "task.retried", v: 1, attempt, reason: "its worker was stopped" }], { id });
  const task = await store.journal.tasks.get(id);
  if (task === undefined) throw new Error("no task");
  let read = 0;
  const events: MarkQueries["events"] = async (look) => {
    const found = await store.journal.marks.events(look);
    read += found.length;
    return found;
  };
  const past = await readPast({ marks: { ...store.journal.marks, events } }, task);
  expect(past).toEqual({ baselines: [baseline], next: { kind: "check", claim: { by: "report", summary: "done" } } });
  expect(read).toBe(17);
});
