/** Sessions of outside agents at their door: who speaks for one, what is told of its calls, and how it ends. */
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openChatWorld } from "../../../test/chat-world.ts";
import { outputOf, sessionClient, sessionsOf } from "../../../test/session-client.ts";
import { bodiesOf, ended, eventsOf, findings } from "../../../test/session-record.ts";

test("a session is a turn: entered, its calls, left with its outcome, one end; it verifies clean, and its author is the principal", async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  const { threadId, turnId, envelopeHash } = await agent.call("envelope/enter", {
    envelope: "edit",
    agentName: "probe",
  });
  await agent.run(turnId, "c1", "echo one > a.txt");
  await agent.call("tool/call", { turnId, callId: "c2", tool: "no_such_tool" });
  await agent.call("envelope/hop", { turnId, callId: "h1", to: "explore", reason: "to look only" });
  const big = { words: "x".repeat(70_000) };
  expect(await agent.refused("envelope/leave", { turnId, outcome: big })).toMatch(/^usage\.invalid .*at most/);
  expect(await agent.run(turnId, "c3", "cat a.txt")).toMatchObject({ outcome: "ok" });
  expect(await agent.call("envelope/leave", { turnId, outcome: { made: ["a.txt"] } })).toMatchObject({
    status: "left",
  });

  const events = await eventsOf(world, threadId);
  const kept = new Set([
    "turn.admitted",
    "turn.completed",
    "tool.intended",
    "tool.settled",
    "envelope.entered",
    "envelope.left",
  ]);
  expect(events.filter(({ body }) => kept.has(body.type)).map(({ author, body }) => [author, body.type])).toEqual([
    ["user:owner", "turn.admitted"],
    ["system", "envelope.entered"],
    ["agent:outside", "tool.intended"],
    ["agent:outside", "tool.settled"],
    ["agent:outside", "tool.settled"],
    ["agent:outside", "tool.intended"],
    ["agent:outside", "envelope.left"],
    ["agent:outside", "envelope.entered"],
    ["agent:outside", "tool.settled"],
    ["agent:outside", "tool.intended"],
    ["agent:outside", "tool.settled"],
    ["system", "envelope.left"],
    ["system", "turn.completed"],
  ]);
  expect((await bodiesOf(world, threadId, "turn.admitted"))[0]?.outside).toEqual({
    onDisconnect: "stop",
    idleMs: 1_800_000,
    agentName: "probe",
  });
  expect(await bodiesOf(world, threadId, "envelope.left")).toMatchObject([
    { cause: "hop", envelopeHash },
    { cause: "end", calls: 1, outcome: { made: ["a.txt"] } },
  ]);
  expect(agent.said("envelope/ended")).toEqual([{ turnId, threadId, status: "completed" }]);
  expect(await findings(world, threadId)).toEqual([]);
  // The thread is in no envelope, and enters one again.
  const again = await agent.call("envelope/enter", { threadId, envelope: "explore" });
  expect(again).toMatchObject({ threadId, envelope: { id: "explore" } });
  await agent.call("envelope/leave", { turnId: again.turnId });
  expect(await findings(world, threadId)).toEqual([]);
});

test("W3: one connection speaks for a session, and the late end of one that was replaced is nothing to it", async () => {
  await using world = await openChatWorld();
  const [first, second, third] = [await sessionClient(world), await sessionClient(world), await sessionClient(world)];
  const { threadId, turnId } = await first.call("envelope/enter", { envelope: "explore", agentName: "weaver" });
  expect(await second.refused("envelope/enter", { envelope: "explore", agentName: "weaver" })).toMatch(
    /^session\.exists /,
  );
  expect(await second.refused("tool/call", { turnId, callId: "a", tool: "bash" })).toMatch(
    /^session\.elsewhere another/,
  );
  // Two at once: the one that came last has it.
  const both = [second, third].map((one) => one.call("envelope/attach", { turnId }));
  expect(await Promise.all(both)).toMatchObject([{ state: "open" }, { state: "open" }]);
  const tries = await Promise.all(
    [second, third].map((one, at) => one.refused("tool/call", { turnId, callId: `t${at}`, tool: "list" })),
  );
  expect(tries.map((text) => text.split(" ")[0])).toEqual(expect.arrayContaining(["answered", "session.elsewhere"]));
  await second.call("envelope/attach", { turnId });
  await first.hears("envelope/replaced");
  expect(await first.refused("envelope/leave", { turnId })).toMatch(/^session\.elsewhere /);
  first[Symbol.dispose]();
  third[Symbol.dispose]();
  expect(outputOf(await second.run(turnId, "b", "echo still here"))).toContain("still here");
  expect((await second.call("envelope/sessions", {})).data).toMatchObject([
    { turnId, threadId, agentName: "weaver", isAttached: true, envelope: "explore", calls: [] },
  ]);
  // The one that speaks for it is not gone before its own connection ends.
  second[Symbol.dispose]();
  expect(await ended(world, threadId)).toMatchObject({ status: "interrupted" });
});

test("W4, W7: a client that comes back attaches to its session, and its call that ran on has one result", async () => {
  await using world = await openChatWorld();
  const first = await sessionClient(world);
  const { threadId, turnId } = await first.call("envelope/enter", { envelope: "edit", onDisconnect: "keep" });
  const { cursor } = await first.run(turnId, "c1", "echo one >> ran");
  const slow = {
    turnId,
    callId: "c2",
    tool: "bash",
    arguments: { command: "echo two >> ran; until test -e go; do sleep 0.1; done; cat ran" },
  };
  const cut = first.client.ask("tool/call", slow);
  await expect.poll(async () => (await bodiesOf(world, threadId, "tool.intended")).length).toBe(2);
  first[Symbol.dispose]();
  // Nothing that waited is left waiting.
  await expect(cut).rejects.toThrow("the server went away");
  const second = await sessionClient(world);
  expect(await second.call("envelope/attach", { turnId, after: cursor })).toMatchObject({
    state: "open",
    threadId,
    calls: ["c2"],
    results: [],
    hasMore: false,
  });
  const again = second.call("tool/call", slow);
  await second.client.ask("envelope/sessions");
  const other = await sessionClient(world);
  await other
    .call("envelope/enter", { threadId: undefined, envelope: "edit" })
    .then(({ turnId: mine }) => other.run(mine, "go", "touch go"));
  expect(outputOf(await again)).toContain("one\ntwo");
  expect(await second.call("envelope/attach", { turnId, after: cursor })).toMatchObject({
    calls: [],
    results: [{ callId: "c2", outcome: "ok", tool: "bash" }],
  });
  await second.call("envelope/leave", { turnId });
  // What there was can be read when it has ended.
  expect(await second.call("envelope/attach", { turnId, after: 0 })).toMatchObject({
    state: "ended",
    end: { status: "completed" },
    results: [{ callId: "c1" }, { callId: "c2" }],
  });
  expect(outputOf(await second.call("tool/call", slow))).toContain("one\ntwo");
  expect(await second.refused("tool/call", { ...slow, arguments: {} })).toMatch(/^store\.id-conflict /);
  expect(await second.refused("tool/call", { ...slow, callId: "c9" })).toMatch(/^turn\.not-found /);
});

test("W6: what a call puts out comes live under its call and its request, before its answer", async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  const { threadId, turnId } = await agent.call("envelope/enter", { envelope: "explore" });
  const asked = agent.client.ask("tool/call", {
    turnId,
    callId: "loud",
    tool: "bash",
    arguments: { command: "for n in 1 2 3; do echo line $n; sleep 0.05; done" },
  });
  const answer = await asked;
  const notes = agent.said("tool/output");
  expect(notes.map(({ delta }) => delta).join("")).toBe("line 1\nline 2\nline 3\n");
  for (const note of notes) expect(note).toMatchObject({ threadId, turnId, callId: "loud", requestId: answer.id });
  const [lastNote, answered] = [
    agent.client.received.findLastIndex(({ method }) => method === "tool/output"),
    agent.client.received.findIndex(({ id }) => id === answer.id),
  ];
  expect(lastNote).toBeLessThan(answered);
  await agent.call("envelope/leave", { turnId });
});

test("a call is cancelled while it runs, with its processes, and while it waits; the queue is bounded", async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  const { threadId, turnId } = await agent.call("envelope/enter", { envelope: "edit" });
  const long = agent.run(turnId, "long", "sleep 300 & echo began; sleep 300; echo never > after");
  await agent.hears("tool/output");
  // A call that fails fails this test.
  long.catch(() => undefined);
  const waiting = Array.from({ length: 63 }, (_, at) =>
    agent.refused("tool/call", { turnId, callId: `w${at}`, tool: "list" }),
  );
  expect(await agent.refused("tool/call", { turnId, callId: "many", tool: "list" })).toMatch(
    /^door\.overloaded 64 calls/,
  );
  const cancel = (callId: string) => agent.call("tool/cancel", { turnId, callId });
  expect(await cancel("w0")).toMatchObject({ status: "cancelling" });
  expect(await cancel("long")).toMatchObject({ status: "cancelling" });
  expect(await long).toMatchObject({ callId: "long", outcome: "cancelled", failure: { code: "tool.cancelled" } });
  const [first, ...others] = await Promise.all(waiting);
  expect(first).toMatch(/^tool\.cancelled /);
  for (const other of others) expect(other).toMatch(/^answered .*"outcome":"ok"/);
  expect(await cancel("long")).toMatchObject({ status: "settled" });
  expect(await cancel("nothing")).toMatchObject({ status: "unknown" });
  expect(outputOf(await agent.run(turnId, "look", "ps -e -o args | grep -c '[s]leep 300'"))).toMatch(/^0$/m);
  expect(existsSync(join(world.workspace, "after"))).toBe(false);
  await agent.call("envelope/leave", { turnId });
  expect(await findings(world, threadId)).toEqual([]);
});

test("a session that calls nothing ends after its time, which its owner bounds", async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  expect(await agent.refused("envelope/enter", { idleSec: 80_000 })).toMatch(/^usage\.invalid .*1800 seconds at most/);
  const { threadId, turnId } = await agent.call("envelope/enter", {
    envelope: "explore",
    idleSec: 1,
    onDisconnect: "keep",
  });
  // A call takes as long as it takes.
  expect(await agent.run(turnId, "c1", "sleep 1.5")).toMatchObject({ outcome: "ok" });
  await agent.hears("envelope/ended");
  expect(agent.said("envelope/ended")).toMatchObject([
    { turnId, status: "interrupted", failure: { code: "turn.timeout" } },
  ]);
  expect(await bodiesOf(world, threadId, "envelope.left")).toMatchObject([{ cause: "end" }]);
  expect(await findings(world, threadId)).toEqual([]);
});

test("the same client id is the same session, of its own user alone", async () => {
  await using world = await openChatWorld();
  const [agent, guest] = [await sessionClient(world), await sessionClient(world, "user")];
  const asked = { envelope: "explore", clientId: "one", agentName: "a", onDisconnect: "keep" } as const;
  const entered = await agent.call("envelope/enter", asked);
  const again = await sessionClient(world);
  expect(await again.call("envelope/enter", asked)).toMatchObject({
    turnId: entered.turnId,
    threadId: entered.threadId,
  });
  await agent.hears("envelope/replaced");
  const others = await guest.call("envelope/enter", asked);
  expect(others.turnId).not.toBe(entered.turnId);
  const { turnId } = entered;
  for (const method of ["envelope/attach", "envelope/leave", "tool/cancel", "tool/call"] as const) {
    const params = {
      turnId,
      ...(method.startsWith("tool") ? { callId: "x" } : {}),
      ...(method === "tool/call" ? { tool: "list" } : {}),
    };
    expect(await guest.refused(method, params)).toMatch(/^door\.forbidden .*another client/);
  }
  await again.call("envelope/leave", { turnId });
  // Also when it has ended.
  expect(await guest.refused("envelope/attach", { turnId, after: 0 })).toMatch(/^door\.forbidden /);
  await guest.call("envelope/leave", { turnId: others.turnId });
});

test("W1, W2: nothing before initialize, nothing for whoever may only look, and a user has the rights of a user", async () => {
  await using world = await openChatWorld();
  const enter = { envelope: "explore" };
  const [early, viewer] = [sessionsOf(await world.client()), sessionsOf(await world.client("viewer"))];
  expect(await early.refused("envelope/enter", enter)).toMatch(/Not initialized/);
  for (const method of ["envelope/enter", "envelope/attach", "envelope/sessions", "tool/call"]) {
    expect(await viewer.refused(method, enter)).toMatch(/^door\.forbidden .*viewer; it may use .* that only read/);
  }
  const user = await sessionClient(world, "user");
  await mkdir(join(world.workspace, "below"));
  const { turnId, threadId } = await user.call("envelope/enter", { ...enter, cwd: join(world.workspace, "below") });
  expect((await bodiesOf(world, threadId, "thread.created"))[0]?.workspace).toBe(join(world.workspace, "below"));
  expect((await eventsOf(world, threadId)).find(({ body }) => body.type === "turn.admitted")?.author).toBe("user:user");
  // Above its rights, whatever it is called.
  expect(await user.refused("envelope/enter", { envelope: "full" })).toMatch(/^door\.forbidden /);
  expect(await user.refused("envelope/enter", { sandbox: "danger-full-access" })).toMatch(/^door\.forbidden /);
  expect(await user.refused("envelope/enter", { envelope: "edit", ceiling: "explore" })).toMatch(/^ceiling\.exceeded /);
  expect(await user.refused("envelope/enter", { ...enter, cwd: world.root })).toMatch(
    /^door\.forbidden .*only an owner/,
  );
  for (const method of [
    "thread/start",
    "envelope/list",
    "evidence/gate",
    "thread/hop",
    "config/read",
    "command/exec",
  ]) {
    expect(await user.refused(method, {})).toMatch(/^door\.forbidden .*role user; it may use envelope sessions/);
  }
  // What the owner has begun elsewhere, or without a sandbox, is no way around it.
  const others = await sessionClient(world);
  const begun = async (params: object): Promise<string> => {
    const entered = await others.call("envelope/enter", params);
    await others.call("envelope/leave", { turnId: entered.turnId });
    return entered.threadId;
  };
  const far = await begun({ envelope: "edit", cwd: world.root });
  expect(await user.refused("envelope/enter", { threadId: far })).toMatch(/^door\.forbidden .*only an owner/);
  const free = await begun({ envelope: "full" });
  expect(await user.refused("envelope/enter", { threadId: free })).toMatch(/^door\.forbidden full has no sandbox/);
  const hop = { turnId, callId: "h", to: "full", reason: "more" };
  expect(await user.call("envelope/hop", hop)).toMatchObject({ outcome: "denied", envelope: { id: "explore" } });
  // It hears of its own session, and of nothing else here; the owner sees both.
  const owner = await sessionClient(world);
  const own = await owner.call("envelope/enter", enter);
  await owner.run(own.turnId, "c", "echo secret plans");
  expect((await owner.call("envelope/sessions", {})).data.map(({ by }) => by)).toEqual(["user:user", "user:owner"]);
  expect((await user.call("envelope/sessions", {})).data.map(({ by }) => by)).toEqual(["user:user"]);
  await user.call("envelope/leave", { turnId });
  const heard = user.client.received.flatMap(({ method }) => method ?? []);
  expect(heard.filter((method) => method !== "tool/output")).toEqual(["envelope/ended"]);
});

test("D12: a call that names another envelope than the one its agent is in by then is refused, and is on record", async () => {
  await using world = await openChatWorld();
  const agent = await sessionClient(world);
  const { threadId, turnId, envelopeHash } = await agent.call("envelope/enter", { envelope: "edit" });
  const run = (callId: string, more: object) =>
    agent.call("tool/call", { turnId, callId, tool: "bash", arguments: { command: `echo ${callId} >> ran` }, ...more });
  const hop = (callId: string, to: string, more: object = {}) =>
    agent.call("envelope/hop", { turnId, callId, to, reason: "on", ...more });
  expect(await run("right", { envelopeHash })).toMatchObject({ outcome: "ok" });
  // Sent before the answer to the hop was read.
  const [explored, late] = await Promise.all([hop("down", "explore"), run("late", { envelopeHash })]);
  expect(explored).toMatchObject({ outcome: "ok" });
  const changed = { outcome: "denied", failure: { code: "envelope.changed" } };
  expect(late).toMatchObject(changed);
  expect(await hop("stale", "review", { envelopeHash })).toMatchObject({ ...changed, envelope: { id: "explore" } });
  expect(await run("unknown", { envelopeHash: "0".repeat(64) })).toMatchObject(changed);
  expect(await hop("up", "back", { envelopeHash: explored.envelopeHash })).toMatchObject({ envelopeHash });
  expect(await run("again", { envelopeHash: explored.envelopeHash })).toMatchObject(changed);
  expect(await run("then", { envelopeHash })).toMatchObject({ outcome: "ok" });
  // Who names none gets what holds when the call's turn comes.
  const [, unnamed] = await Promise.all([hop("look", "explore"), run("unnamed", {})]);
  expect(unnamed.outcome).not.toBe("denied");
  expect(readFileSync(join(world.workspace, "ran"), "utf8")).toBe("right\nthen\n");
  await agent.call("envelope/leave", { turnId });
  const refused = (await bodiesOf(world, threadId, "tool.settled")).filter(({ outcome }) => outcome === "denied");
  expect(refused.map(({ callId }) => callId)).toEqual(["late", "stale", "unknown", "again"]);
  expect(await findings(world, threadId)).toEqual([]);
});

test("a question of a session goes to whoever may answer, and an answer lets the call run", async () => {
  await using world = await openChatWorld({ settings: { approvalPolicy: "untrusted" } });
  const agent = await sessionClient(world);
  const { threadId, turnId } = await agent.call("envelope/enter", { envelope: "edit" });
  const decide = async (callId: string, decision: "accept" | "decline" | undefined) => {
    const asked = agent.run(turnId, callId, `touch ${callId}.txt`);
    const count = async () =>
      (await bodiesOf(world, threadId, "approval.requested")).filter(({ question }) => question.callId === callId);
    await expect.poll(async () => (await count()).length).toBe(1);
    const [question] = await count();
    const approvalId = question?.approvalId ?? "";
    if (decision === undefined) await agent.call("tool/cancel", { turnId, callId });
    else await world.heddle.as("user:owner").answer({ threadId, approvalId, decision });
    return (await asked).outcome;
  };
  expect(await decide("yes", "accept")).toBe("ok");
  expect(await decide("no", "decline")).toBe("denied");
  expect(await decide("never", undefined)).toBe("cancelled");
  expect(["yes", "no", "never"].map((name) => existsSync(join(world.workspace, `${name}.txt`)))).toEqual([
    true,
    false,
    false,
  ]);
  await agent.call("envelope/leave", { turnId });
  expect(await findings(world, threadId)).toEqual([]);
});
