/** 12.3: commands that go on after their turn are looked after until the last of them has ended. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EventBody, StoredEvent } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openTestHeddle, type TestHeddle } from "../../test/test-heddle.ts";

const NEVER_MS = 600_000;
/** Waits for a word of the test, which comes when the turn is over. */
const later = (then: string): { tool: string; args: Readonly<Record<string, unknown>> } => ({
  tool: "exec_command",
  args: { cmd: `until [ -e go ]; do sleep 0.02; done; ${then}`, yield_time_ms: 250 },
});
const PLANT = "mkdir -p sub/.vscode && echo evil > sub/.vscode/tasks.json";

async function open(then: string, sweepEveryMs: number): Promise<TestHeddle> {
  const script = [{ calls: [later(then)] }, { text: "done" }, { text: "done again" }];
  return openTestHeddle({ isUnattended: false, sweepEveryMs, script });
}

async function expectUndone(t: TestHeddle, threadId: string, turnId: string): Promise<void> {
  const path = join(t.workspace, "sub/.vscode");
  const quarantinedTo = expect.stringContaining(t.home) as string;
  expect(await t.next(threadId, "path.violated")).toMatchObject({ turnId, path, quarantinedTo });
  expect(existsSync(path)).toBe(false);
  const types = bodies(await t.events(threadId)).map(({ type }) => type);
  expect(types.indexOf("path.violated")).toBeGreaterThan(types.indexOf("turn.completed"));
}

function bodies(events: readonly StoredEvent[]): EventBody[] {
  return events.map(({ body }) => body);
}

test("12.3: what a command plants after its turn is undone and told when it has ended", async () => {
  await using t = await open(PLANT, NEVER_MS);
  const turn = await t.start("leave it running");
  expect((await turn.done).body.status).toBe("completed");
  await writeFile(join(t.workspace, "go"), "");
  await expectUndone(t, turn.threadId, turn.turnId);
});

test("12.3: and while it continues", async () => {
  await using t = await open(`${PLANT}; sleep 300`, 20);
  const turn = await t.start("leave it running");
  await turn.done;
  await writeFile(join(t.workspace, "go"), "");
  await expectUndone(t, turn.threadId, turn.turnId);
  expect(await t.heddle.terminals(turn.threadId)).toHaveLength(1);
});

test("12.3: what is found when the sandbox is replaced is recorded too", async () => {
  await using t = await open(`${PLANT}; touch planted; sleep 300`, NEVER_MS);
  const turn = await t.start("leave it running");
  await turn.done;
  await writeFile(join(t.workspace, "go"), "");
  while (!existsSync(join(t.workspace, "planted"))) await new Promise(setImmediate);
  const settings = { ...t.settings, sandboxMode: "read-only" as const };
  const input = [{ type: "text" as const, text: "elsewhere" }];
  const next = await t.heddle.as("user:owner").startTurn({ thread: turn.threadId, input, settings });
  expect((await next.done).body.status).toBe("completed");
  await expectUndone(t, turn.threadId, turn.turnId);
});
