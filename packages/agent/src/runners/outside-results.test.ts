/** Calls of an outside agent whose session has ended, found again on record. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { openJournal } from "@heddle/journal";
import { NO_USAGE, type EventBody, type TurnSettings } from "@heddle/protocol";
import { expect, test } from "vitest";
import { findResult } from "./outside-results.ts";

const turnId = "turn-1";
const settings: TurnSettings = {
  provider: "p",
  model: "m",
  sandboxMode: "read-only",
  networkAccess: false,
  writableRoots: [],
  approvalPolicy: "never",
};
const holder = { pid: 1, startTicks: "1", bootId: "b", pidNamespace: "n" };

const intended = (callId: string, tool: string, args: unknown): EventBody => ({
  type: "tool.intended",
  v: 1,
  turnId,
  callId,
  itemId: `item_${callId}`,
  tool,
  arguments: args,
  isReadOnly: false,
});
const settled = (callId: string, tool: string, outcome: "ok" | "denied"): EventBody => ({
  type: "tool.settled",
  v: 1,
  turnId,
  callId,
  itemId: `item_${callId}`,
  tool,
  outcome,
  output: [{ type: "text", text: `${tool} ${outcome}` }],
});

test("a call id that is repeated after its session stands for the same call, and is a conflict for another tool or other arguments", async () => {
  const root = await mkdtemp(path.join(tmpdir(), "heddle-results-"));
  try {
    await using journal = await openJournal({ home: path.join(root, "home") });
    const events: EventBody[] = [
      { type: "thread.created", v: 1, workspace: root, origin: "test" },
      { type: "turn.admitted", v: 1, turnId, input: [], settings, holder, task: "outside" },
      intended("c1", "write", { path: "a" }),
      settled("c1", "write", "ok"),
      // Refused before anything was intended.
      settled("c2", "bash", "denied"),
      { type: "turn.completed", v: 1, turnId, status: "completed", usage: NO_USAGE, durationMs: 1 },
    ];
    await journal.append({ stream: "thread-1", author: "user:owner", events });
    const turn = await journal.threads.turn(turnId);
    if (turn === undefined) throw new Error("the turn is not on record");
    const find = (callId: string, tool: string, args: unknown) =>
      findResult(journal, turn, { callId, tool, arguments: args });
    expect(await find("c1", "write", { path: "a" })).toMatchObject({ outcome: "ok", output: [{ text: "write ok" }] });
    expect(await find("c2", "bash", {})).toMatchObject({ outcome: "denied" });
    expect(await findResult(journal, turn, { callId: "c1" })).toMatchObject({ outcome: "ok" });
    expect(await find("c3", "write", { path: "a" })).toBeUndefined();
    for (const [callId, tool, args] of [
      ["c1", "read", { path: "a" }],
      ["c1", "write", { path: "b" }],
      ["c2", "write", {}],
    ] as const)
      await expect(find(callId, tool, args)).rejects.toMatchObject({ code: "store.id-conflict" });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
