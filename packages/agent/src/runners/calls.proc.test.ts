import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { NO_USAGE, type ModelToolCall, type StoredEvent } from "@heddle/protocol";
import { toolsFor } from "@heddle/tools";
import { expect, test } from "vitest";
import { openTestHeddle } from "../../test/test-heddle.ts";
import { EVERY_ABILITY } from "./abilities.ts";
import { runCalls } from "./calls.ts";
import { OWN_HEALTH } from "./own-health.ts";
import type { Runner } from "./runner.ts";

const read = (file: string) => ({ tool: "read", args: { file_path: file } });
const makes = (file: string) => ({ tool: "write", args: { file_path: file, content: "made\n" } });

/** `intended` or `settled`, with the number of the call in the answer. */
function steps(events: readonly StoredEvent[]): readonly string[] {
  const numbers = new Map<string, number>();
  return events.flatMap(({ body }) => {
    if (body.type !== "tool.intended" && body.type !== "tool.settled") return [];
    const number = numbers.get(body.callId) ?? numbers.size;
    numbers.set(body.callId, number);
    return [`${body.type.slice("tool.".length)} ${number}`];
  });
}

test("D13: reads of one answer run side by side, and what changes something alone and in its place", async () => {
  // Each of two reads waits until the other has begun too; one after the other they would wait for ever.
  const command = `grep -q '"tool_name":"Read"' || exit 0; mktemp began.XXXXXX; until [ "$(ls began.* | wc -l)" -ge 2 ]; do sleep 0.02; done`;
  const script = [{ calls: [read("a.txt"), read("b.txt"), makes("c.txt"), read("c.txt")] }, { text: "done" }];
  await using t = await openTestHeddle({
    providers: [{ id: "scripted", family: "anthropic", script }],
    hooks: [{ event: "PreToolUse", command }],
  });
  for (const name of ["a.txt", "b.txt"]) await writeFile(join(t.workspace, name), `of ${name}\n`);
  const { threadId, done } = await t.start("read two files, and make a third");
  expect((await done).body).toMatchObject({ status: "completed" });
  const events = await t.events(threadId);
  const order = steps(events);
  const [reads, rest] = [order.slice(0, 4), order.slice(4)];
  expect(reads.toSorted()).toEqual(["intended 0", "intended 1", "settled 0", "settled 1"]);
  expect(rest).toEqual(["intended 2", "settled 2", "intended 3", "settled 3"]);
  const results = events.flatMap(({ body }) => (body.type === "tool.settled" ? [[body.outcome, body.output]] : []));
  expect(JSON.stringify(results.at(-1))).toMatch(/^\["ok".*made/);
});

const CALL = (file: string): ModelToolCall => ({
  kind: "toolCall",
  callId: `call_${file}`,
  name: "write",
  shape: "json",
  input: JSON.stringify({ file_path: file, content: "x" }),
});

test("V13: while the store is locked and the intent of a call cannot be stored, its tool does not run and the caller is told", async () => {
  let failure: unknown;
  const locking: Runner = {
    name: "embedded",
    capabilities: EVERY_ABILITY,
    probe: () => Promise.resolve(OWN_HEALTH),
    check: () => Promise.resolve(),
    async run(turn, io) {
      const context = { turn, io, toolset: toolsFor("anthropic", turn.sandboxContext.envelope) };
      const call = (file: string) => runCalls([CALL(file)], context);
      await call("before.txt");
      {
        using other = new DatabaseSync(join(t.home, "heddle.db"));
        other.exec("BEGIN IMMEDIATE");
        failure = await call("locked.txt").catch((error: unknown) => error);
        other.exec("ROLLBACK");
      }
      return { kind: "completed", spent: { usage: NO_USAGE } };
    },
  };
  await using t = await openTestHeddle({ runner: locking });
  const { threadId, done } = await t.start("write two files");
  expect((await done).body).toMatchObject({ status: "failed", failure: { code: "store.busy" } });
  expect(failure).toMatchObject({ code: "store.busy" });
  const isThere = ["before.txt", "locked.txt"].map((name) => existsSync(join(t.workspace, name)));
  expect(isThere).toEqual([true, false]);
  expect(steps(await t.events(threadId))).toEqual(["intended 0", "settled 0"]);
}, 180_000);
