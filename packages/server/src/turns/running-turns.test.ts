import { thisHolder } from "@heddle/agent";
import { NO_USAGE, newTurnId, type EventBody } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openHttpWorld, SETTINGS } from "../../test/http-world.ts";
import { RunningTurns } from "./running-turns.ts";

test("a drain waits for turns that run, not for those that wait for an answer, and refuses new ones", async () => {
  await using world = await openHttpWorld();
  const { journal } = world.heddle;
  const turns = new RunningTurns(world.heddle);
  const [runs, waits] = [newTurnId(), newTurnId()];
  const never = new Promise<never>(() => undefined);
  const append = (stream: string, events: readonly EventBody[]): Promise<unknown> =>
    journal.append({ stream, author: "user:owner", events });
  const threads = new Map<string, string>();
  for (const turnId of [runs, waits]) {
    const threadId = await world.newThread();
    threads.set(turnId, threadId);
    await append(threadId, [
      { type: "turn.admitted", v: 1, turnId, input: [], settings: SETTINGS, holder: thisHolder() },
    ]);
    await turns.begin(() => Promise.resolve({ turnId, done: never }));
  }
  const limit = new AbortController();
  let isOver = false;
  const draining = turns.drain(limit.signal).then(() => (isOver = true));
  await expect(turns.begin(() => Promise.resolve({ turnId: newTurnId(), done: never }))).rejects.toMatchObject({
    code: "door.overloaded",
  });
  const question = { kind: "tool", callId: "call_1", itemId: "item_1", tool: "exec_command", arguments: {} } as const;
  await append(threads.get(waits) ?? "", [
    { type: "approval.requested", v: 1, turnId: waits, approvalId: "apr_1", question },
  ]);
  expect(isOver).toBe(false);
  await append(threads.get(runs) ?? "", [
    { type: "turn.completed", v: 1, turnId: runs, status: "completed", usage: NO_USAGE, durationMs: 1 },
  ]);
  await draining;
  // At its limit it waits no longer, whatever runs.
  const stubborn = new RunningTurns(world.heddle);
  const turnId = newTurnId();
  const open: EventBody = { type: "turn.admitted", v: 1, turnId, input: [], settings: SETTINGS, holder: thisHolder() };
  await append(await world.newThread(), [open]);
  stubborn.add({ turnId, done: never });
  limit.abort();
  await stubborn.drain(limit.signal);
});
