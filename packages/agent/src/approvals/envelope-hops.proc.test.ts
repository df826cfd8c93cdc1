import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { envelopeHash } from "@heddle/tools";
import { expect, test } from "vitest";
import { hopCall, openHopHeddle, runCall } from "../../test/hop-heddle.ts";

const say = { text: "done" };

test("H1: a model hops where an edge leads, works there with its tools, and the next turn begins there", async () => {
  await using t = await openHopHeddle({
    script: [
      { calls: [runCall("touch too-early")] },
      { calls: [hopCall("edit")] },
      { calls: [runCall("touch made")] },
      say,
      say,
    ],
  });
  const turn = await t.start("fix it");
  expect((await turn.done).body.status).toBe("completed");
  expect(await t.path(turn.threadId)).toEqual(["look", "edit"]);
  expect([existsSync(join(t.workspace, "too-early")), existsSync(join(t.workspace, "made"))]).toEqual([false, true]);
  const [left] = await t.bodies(turn.threadId, "envelope.left");
  const [first, second] = await t.bodies(turn.threadId, "envelope.entered");
  expect(left).toEqual({
    type: "envelope.left",
    v: 1,
    duringTurn: turn.turnId,
    cause: "hop",
    envelopeHash: first?.envelopeHash,
    calls: 2,
  });
  expect(second).toMatchObject({
    duringTurn: turn.turnId,
    cause: "hop",
    envelopeHash: envelopeHash(second!.envelope),
    depth: 1,
    hop: { to: "edit", channel: "model", reason: "because", guards: [], callId: "call_2_1" },
  });
  await t.again(turn.threadId);
  expect(await t.path(turn.threadId)).toEqual(["look", "edit"]);
  const starts = await t.bodies(turn.threadId, "turn.started");
  expect(starts.map(({ envelope }) => envelope.id)).toEqual(["look", "edit"]);
});

test("H14: leaving and entering are neighbours in the chain, by the agent, and the thread continues after them", async () => {
  await using t = await openHopHeddle({ script: [{ calls: [hopCall("edit")] }, say] });
  const turn = await t.start("fix it");
  await turn.done;
  const events = await t.events(turn.threadId);
  const at = events.findIndex(({ body }) => body.type === "envelope.left");
  const [left, entered] = events.slice(at, at + 2);
  expect([left, entered].map((event) => [event?.body.type, event?.author])).toEqual([
    ["envelope.left", "agent:embedded"],
    ["envelope.entered", "agent:embedded"],
  ]);
  expect([entered?.version, entered?.at]).toEqual([(left?.version ?? 0) + 1, left?.at]);
  expect(events.map(({ version }) => version)).toEqual(events.map((_event, index) => index + 1));
  expect((await t.heddle.journal.verify(turn.threadId)).damage).toEqual([]);
});

test.each([
  ["H2: no edge", hopCall("explore"), "hop.no-edge"],
  ["H2: no such envelope", hopCall("nowhere"), "hop.unknown-envelope"],
  ["H3: where it is", hopCall("look"), "hop.same-envelope"],
  ["H4: an edge for users", hopCall("full", { channel: "user", by: "user:owner" }), "hop.not-authorized"],
  ["H5: a command that fails", hopCall("test"), "hop.guard-failed"],
  ["H5: evidence that is not there", hopCall("plan"), "hop.guard-failed"],
  ["H5: no outcome", hopCall("reflect"), "hop.guard-failed"],
  ["H6: nobody can be asked", hopCall("review"), "hop.approval-denied"],
  ["H10: no carry", hopCall("deploy"), "hop.carry-invalid"],
  ["H10: too much", hopCall("deploy", { carry: { plan: "x".repeat(40_000) } }), "hop.carry-invalid"],
  ["H11: nothing to go back to", hopCall("back"), "hop.no-edge"],
])("%s: refused on record, and the call after it still runs", async (_name, call, code) => {
  await using t = await openHopHeddle({ script: [{ calls: [call, runCall("echo still here")] }, say] });
  const turn = await t.start("hop");
  expect((await turn.done).body.status).toBe("completed");
  expect(await t.path(turn.threadId)).toEqual(["look"]);
  const [refused] = await t.bodies(turn.threadId, "envelope.hop-refused");
  expect(refused).toMatchObject({
    duringTurn: turn.turnId,
    from: "look",
    hop: { channel: "model" },
    failure: { code },
  });
  const settled = await t.bodies(turn.threadId, "tool.settled");
  expect(settled.map(({ outcome, failure }) => [outcome, failure?.code])).toEqual([
    ["denied", code],
    ["ok", undefined],
  ]);
});

test("H5: a guard that is met lets the hop through, with what it found", async () => {
  await using t = await openHopHeddle({ script: [{ calls: [hopCall("test")] }, say] });
  await writeFile(join(t.workspace, "ready"), "");
  const turn = await t.start("hop");
  await turn.done;
  expect(await t.path(turn.threadId)).toEqual(["look", "test"]);
  const [, entered] = await t.bodies(turn.threadId, "envelope.entered");
  expect(entered?.hop?.guards).toEqual([{ kind: "command", isMet: true, found: "exit code 0" }]);
});

test("H10: what a hop carries and its outcome are on record, and the model reads it in the next envelope", async () => {
  const call = hopCall("deploy", { carry: { plan: "ship it" }, outcome: { found: [] } });
  await using t = await openHopHeddle({ script: [{ calls: [call] }, say] });
  const turn = await t.start("hop");
  await turn.done;
  const [, entered] = await t.bodies(turn.threadId, "envelope.entered");
  expect(entered?.hop).toMatchObject({ carry: { plan: "ship it" } });
  expect((await t.bodies(turn.threadId, "envelope.left"))[0]?.outcome).toEqual({ found: [] });
  const [settled] = await t.bodies(turn.threadId, "tool.settled");
  expect(settled?.output).toEqual([{ type: "text", text: expect.stringContaining('carried: {"plan":"ship it"}') }]);
});

test.each([
  ["accept", "look,review", "ok"],
  ["decline", "look", "denied"],
] as const)("H6: an edge that asks, and the user says %s", async (decision, path, outcome) => {
  await using t = await openHopHeddle({
    isUnattended: false,
    settings: { approvalPolicy: "on-request" },
    script: [{ calls: [hopCall("review")] }, say],
  });
  const turn = await t.start("hop");
  const { approvalId, question } = await t.next(turn.threadId, "approval.requested");
  expect(question).toMatchObject({
    kind: "tool",
    tool: "hop",
    reason: "because",
    arguments: { from: "look", to: "review" },
  });
  await t.heddle.as("user:owner").answer({ threadId: turn.threadId, approvalId, decision });
  expect((await turn.done).body.status).toBe("completed");
  expect((await t.path(turn.threadId)).join()).toBe(path);
  expect((await t.bodies(turn.threadId, "tool.settled"))[0]).toMatchObject({ outcome });
  const [, entered] = await t.bodies(turn.threadId, "envelope.entered");
  const [refused] = await t.bodies(turn.threadId, "envelope.hop-refused");
  if (decision === "accept") expect(entered?.hop?.approvalId).toBe(approvalId);
  else expect(refused).toMatchObject({ failure: { code: "hop.approval-denied" } });
});

test("D12, H7: calls after a hop in the same answer are refused, and the next request offers the tools of the next envelope", async () => {
  const calls = [
    runCall("echo before"),
    hopCall("edit"),
    runCall("touch after"),
    { tool: "update_plan", args: { plan: [] } },
  ];
  await using t = await openHopHeddle({ script: [{ calls }, { calls: [runCall("touch then")] }, say] });
  const turn = await t.start("hop");
  expect((await turn.done).body.status).toBe("completed");
  const settled = await t.bodies(turn.threadId, "tool.settled");
  expect(settled.map(({ tool, failure }) => [tool, failure?.code])).toEqual([
    ["exec_command", undefined],
    ["hop", undefined],
    ["exec_command", "envelope.changed"],
    ["update_plan", "envelope.changed"],
    ["exec_command", undefined],
  ]);
  expect([existsSync(join(t.workspace, "after")), existsSync(join(t.workspace, "then"))]).toEqual([false, true]);
  const intended = await t.bodies(turn.threadId, "tool.intended");
  expect(intended).toHaveLength(3);
});

test("H8: a command that still runs has ended, on record, before its envelope is left", async () => {
  const background = { tool: "exec_command", args: { cmd: "sleep 600", yield_time_ms: 250 } };
  await using t = await openHopHeddle({ script: [{ calls: [background] }, { calls: [hopCall("edit")] }, say] });
  const turn = await t.start("hop");
  expect((await turn.done).body.status).toBe("completed");
  const types = (await t.events(turn.threadId)).map(({ body }) =>
    body.type === "item.completed" ? `${body.type} ${body.item.type}` : body.type,
  );
  expect(types.indexOf("item.completed commandExecution")).toBeGreaterThan(0);
  expect(types.indexOf("item.completed commandExecution")).toBeLessThan(types.indexOf("envelope.left"));
});

test("H11: a model goes back to what it left, and the way back is not a way round its user", async () => {
  const script = [{ calls: [hopCall("edit")] }, { calls: [hopCall("back")] }, say, { calls: [hopCall("back")] }, say];
  await using t = await openHopHeddle({ script });
  const turn = await t.start("hop");
  await turn.done;
  expect(await t.path(turn.threadId)).toEqual(["look", "edit", "look"]);
  const depths = (await t.bodies(turn.threadId, "envelope.entered")).map(({ cause, depth }) => [cause, depth]);
  expect(depths).toEqual([
    ["start", 0],
    ["hop", 1],
    ["back", 0],
  ]);
  const owner = t.heddle.as("user:owner");
  const { threadId } = turn;
  await owner.hopThread({ threadId, to: "edit", reason: "go on" });
  await owner.hopThread({ threadId, to: "explore", reason: "only look" });
  await t.again(threadId);
  expect(await t.path(threadId)).toEqual(["look", "edit", "look", "edit", "explore"]);
  const [refused] = await t.bodies(threadId, "envelope.hop-refused");
  expect(refused).toMatchObject({ failure: { code: "hop.not-authorized" } });
});

test("H12: the fifth hop of a turn is refused", async () => {
  const pair = [{ calls: [hopCall("edit")] }, { calls: [hopCall("back")] }];
  await using t = await openHopHeddle({ script: [...pair, ...pair, { calls: [hopCall("edit")] }, say] });
  const turn = await t.start("hop");
  await turn.done;
  expect(await t.path(turn.threadId)).toEqual(["look", "edit", "look", "edit", "look"]);
  expect((await t.bodies(turn.threadId, "envelope.hop-refused"))[0]).toMatchObject({
    failure: { code: "hop.too-many" },
  });
});

test("the ceiling holds for a model with an edge", async () => {
  const settings = { ceiling: "explore" };
  await using t = await openHopHeddle({ settings, script: [{ calls: [hopCall("edit")] }, say] });
  const turn = await t.start("hop");
  await turn.done;
  expect(await t.path(turn.threadId)).toEqual(["look"]);
  expect((await t.bodies(turn.threadId, "envelope.hop-refused"))[0]).toMatchObject({
    failure: { code: "ceiling.exceeded" },
  });
});

test("H15: a hop works after a compaction, and a compaction after a hop", async () => {
  const script = [{ calls: [hopCall("edit")] }, say, { text: "a summary" }, { calls: [hopCall("back")] }, say];
  await using t = await openHopHeddle({ script });
  const { threadId, done } = await t.start("hop");
  await done;
  await (
    await t.heddle.as("user:owner").compact(threadId)
  ).done;
  for (const _turn of ["first", "second"]) await t.again(threadId);
  const path = await t.path(threadId);
  expect([path.slice(0, 2), path.includes("look", 1)]).toEqual([["look", "edit"], true]);
});

test("threads whose envelope is a sandbox mode are offered no hop", async () => {
  await using t = await openHopHeddle({
    settings: { envelope: undefined },
    script: [{ calls: [hopCall("explore")] }, say],
  });
  const turn = await t.start("hop");
  await turn.done;
  expect((await t.bodies(turn.threadId, "tool.settled"))[0]).toMatchObject({ failure: { code: "tool.unknown" } });
});
