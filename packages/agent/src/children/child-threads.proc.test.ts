import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { call, collabItems, ofType, openChildWorld, settled } from "../../test/child-world.ts";

const spawn = (message: string, more: Record<string, unknown> = {}) => call("spawn_agent", { message, ...more });

test("a thread starts another, waits for it, reads its message and closes it", async () => {
  await using world = await openChildWorld({
    "find out": [
      spawn("count the files"),
      (ids) => call("wait_agent", { targets: ids }),
      (ids) => call("close_agent", { target: ids[0] }),
      { text: "there are three" },
    ],
    "count the files": [call("exec_command", { cmd: "echo three" }), { text: "three files" }],
  });
  const { t } = world;
  const turn = await t.start("find out");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const events = await t.events(turn.threadId);
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const id = child?.id ?? "";
  const [started] = collabItems(events);
  expect(child).toMatchObject({
    isArchived: true,
    origin: "agent",
    workspace: t.workspace,
    parent: { threadId: turn.threadId, turnId: turn.turnId, itemId: started?.id, depth: 1 },
  });
  expect(collabItems(events)).toMatchObject([
    { tool: "start", status: "completed", prompt: "count the files", threadIds: [id], senderThreadId: turn.threadId },
    { tool: "wait", status: "completed", children: [{ threadId: id, status: "completed", message: "three files" }] },
    { tool: "close", status: "completed", children: [{ threadId: id, status: "closed" }] },
  ]);
  expect(settled(events).map(({ output }) => JSON.parse(output[0]?.type === "text" ? output[0].text : ""))).toEqual([
    { agent_id: id, nickname: null },
    { status: { [id]: { completed: "three files" } }, timed_out: false },
    { previous_status: { completed: "three files" } },
  ]);
  const own = await t.events(id);
  expect(ofType(own, "turn.completed")).toMatchObject([{ status: "completed" }]);
  expect(own.find(({ body }) => body.type === "turn.admitted")?.author).toBe("agent:embedded");
});

test("S7: a child that asks for more than its parent has gets what its parent has, and the record says so", async () => {
  await using world = await openChildWorld(
    {
      "find out": [
        spawn("try to write", { sandbox: "danger-full-access" }),
        (ids) => call("wait_agent", { targets: ids }),
        { text: "it could not" },
      ],
      "try to write": [call("exec_command", { cmd: "echo x > here && echo written" }), { text: "tried" }],
    },
    { settings: { sandboxMode: "read-only" } },
  );
  const { t } = world;
  const turn = await t.start("find out");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const [parents, own] = [await t.events(turn.threadId), await t.events(child?.id ?? "")];
  const [[outer], [inner]] = [ofType(parents, "turn.started"), ofType(own, "turn.started")];
  const { limits, ...narrow } = inner?.envelope ?? {};
  expect(narrow).toEqual(outer?.envelope);
  // Kernel limits come out of the parent's: it keeps one half, and six that may be open have the other.
  const most = ofType(parents, "sandbox.opened")[0]?.holds.processes.max;
  expect(limits?.processes).toBe(most === undefined ? undefined : Math.floor(most / 6));
  expect(existsSync(join(t.workspace, "here"))).toBe(false);
  const narrowed = "danger-full-access is more than its parent has; it runs with read-only";
  expect(settled(parents)[0]?.output).toEqual([
    { type: "text", text: JSON.stringify({ agent_id: child?.id, nickname: null, narrowed }) },
  ]);
  expect(ofType(own, "item.completed").map(({ item }) => item)).toContainEqual(
    expect.objectContaining({ type: "notice", code: "ceiling.exceeded", message: narrowed }),
  );
  expect(ofType(own, "turn.admitted")[0]?.settings.sandboxMode).toBe("read-only");
});

test("S7: whoever starts a turn in a child, it is never allowed more than its parent was", async () => {
  await using world = await openChildWorld(
    {
      "find out": [spawn("wait for more"), (ids) => call("wait_agent", { targets: ids }), { text: "done" }],
      "wait for more": [{ text: "ready" }, call("exec_command", { cmd: "echo x > here" }), { text: "tried" }],
    },
    { settings: { sandboxMode: "read-only" } },
  );
  const { t } = world;
  const turn = await t.start("find out");
  await turn.done;
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const settings = { ...t.settings, sandboxMode: "danger-full-access" } as const;
  const next = await t.heddle
    .as("user:owner")
    .startTurn({ thread: child?.id ?? "", input: [{ type: "text", text: "write" }], settings });
  await next.done;
  const started = ofType(await t.events(child?.id ?? ""), "turn.started").at(-1);
  expect(started?.envelope).toMatchObject({ writeRoots: [], network: "none", sandbox: "required" });
  expect(existsSync(join(t.workspace, "here"))).toBe(false);
});

test("the seventh open child is refused with the bound, and closing one makes room", async () => {
  await using world = await openChildWorld({
    "start many": [
      {
        calls: Array.from({ length: 7 }, (_, index) => ({ tool: "spawn_agent", args: { message: `small ${index}` } })),
      },
      (ids) => call("close_agent", { target: ids[0] }),
      spawn("small again"),
      { text: "done" },
    ],
    small: [{ text: "ok" }],
  });
  const { t } = world;
  const turn = await t.start("start many");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const outcomes = settled(await t.events(turn.threadId)).map(({ outcome, failure }) => failure?.code ?? outcome);
  expect(outcomes).toEqual(["ok", "ok", "ok", "ok", "ok", "ok", "child.too-many", "ok", "ok"]);
});

test("children start children to the depth that is allowed, and the deepest have no tools for it", async () => {
  await using world = await openChildWorld({
    first: [spawn("second"), (ids) => call("wait_agent", { targets: ids }), { text: "done" }],
    second: [spawn("third"), (ids) => call("wait_agent", { targets: ids }), { text: "done" }],
    third: [spawn("fourth"), { text: "alone" }],
  });
  const { t } = world;
  const turn = await t.start("first");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const { threads } = t.heddle.journal;
  const [second] = await threads.childrenOf(turn.threadId, { limit: 9 });
  const [third] = await threads.childrenOf(second?.id ?? "", { limit: 9 });
  expect(third?.parent).toMatchObject({ depth: 2 });
  expect(settled(await t.events(third?.id ?? ""))).toMatchObject([
    { outcome: "denied", failure: { code: "tool.unknown" } },
  ]);
  const offered = (name: string) => JSON.stringify(world.asked(name)[0]?.body).includes('"name":"spawn_agent"');
  expect([offered("first"), offered("second"), offered("third")]).toEqual([true, true, false]);
});

test("without the feature no tool for child threads is offered, and none is in the envelope", async () => {
  await using world = await openChildWorld({ hello: [{ text: "hi" }] }, { childThreads: undefined });
  const turn = await world.t.start("hello");
  await turn.done;
  const [started] = ofType(await world.t.events(turn.threadId), "turn.started");
  expect(started?.envelope.effects).not.toContain("spawn");
  expect(JSON.stringify(world.asked("hello")[0]?.body)).not.toContain("spawn_agent");
});

test("a turn that is interrupted takes its running children with it, soon", async () => {
  await using world = await openChildWorld({
    "find out": [spawn("sleep"), (ids) => call("wait_agent", { targets: ids, timeout_ms: 600_000 }), { text: "done" }],
    sleep: [call("exec_command", { cmd: "sleep 600", yield_time_ms: 30_000 }), { text: "awake" }],
  });
  const { t } = world;
  const turn = await t.start("find out");
  await world.arrived("find out", 2);
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  await t.next(child?.id ?? "", "tool.intended");
  const before = performance.now();
  await t.heddle.as("user:owner").interrupt(turn.turnId, { code: "turn.interrupted", message: "enough" });
  expect((await turn.done).body).toMatchObject({ status: "interrupted" });
  expect(performance.now() - before).toBeLessThan(6000);
  const own = await t.events(child?.id ?? "");
  expect(ofType(own, "turn.completed")).toMatchObject([
    { status: "interrupted", failure: { message: "the turn of its parent thread has ended" } },
  ]);
  const parents = await t.events(turn.threadId);
  expect(collabItems(parents)).toMatchObject([{ tool: "start" }, { tool: "wait", status: "interrupted" }]);
  // The parent's end is the last: nothing of its children runs on.
  expect(own.at(-1)?.position).toBeLessThan(parents.at(-1)?.position ?? 0);
});

test("a turn that ends while a child still runs ends the child, which the record says", async () => {
  await using world = await openChildWorld({
    "find out": [spawn("sleep"), { text: "I do not wait" }],
    sleep: [call("exec_command", { cmd: "sleep 600", yield_time_ms: 30_000 }), { text: "awake" }],
  });
  const { t } = world;
  const turn = await t.start("find out");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  expect(child).toMatchObject({ lastTurnStatus: "interrupted", isArchived: false });
});

test("a child that fails tells its parent why, and the parent goes on", async () => {
  await using world = await openChildWorld({
    "find out": [spawn("say nothing"), (ids) => call("wait_agent", { targets: ids }), { text: "it failed" }],
    "say nothing": [{}],
  });
  const { t } = world;
  const turn = await t.start("find out");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  expect(collabItems(await t.events(turn.threadId)).at(-1)).toMatchObject({
    tool: "wait",
    status: "completed",
    children: [{ status: "failed", message: "the model's answer is empty" }],
  });
});

test("what a child uses counts for the limits of its parent's turn, and ends both with the limit", async () => {
  const usage = { inputTokens: 400, outputTokens: 10 };
  await using world = await openChildWorld(
    {
      "find out": [{ ...spawn("use a lot"), usage }, (ids) => call("wait_agent", { targets: ids }), { text: "done" }],
      "use a lot": [
        { ...call("exec_command", { cmd: "true" }), usage },
        { text: "more", usage },
      ],
    },
    { settings: { limits: { maxTokens: 1000 } } },
  );
  const { t } = world;
  const turn = await t.start("find out");
  expect((await turn.done).body).toMatchObject({ status: "failed", failure: { code: "limit.reached" } });
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  expect(ofType(await t.events(child?.id ?? ""), "turn.completed")).toMatchObject([
    { status: "failed", failure: { code: "limit.reached", details: { limit: "tokens", allowed: 1000 } } },
  ]);
});

test("more input reaches a running child as steering, an idle one as its next turn, and a closed one not at all", async () => {
  const free = Promise.withResolvers<void>();
  await using world = await openChildWorld({
    "find out": [
      spawn("look"),
      (ids) => call("send_input", { target: ids[0], message: "and at b" }),
      (ids) => (free.resolve(), call("wait_agent", { targets: ids })),
      (ids) => call("send_input", { target: ids[0], message: "and at c" }),
      (ids) => call("wait_agent", { targets: ids }),
      (ids) => call("close_agent", { target: ids[0] }),
      (ids) => call("send_input", { target: ids[0], message: "and at d" }),
      { text: "done" },
    ],
    look: [
      async () => {
        await free.promise;
        return call("exec_command", { cmd: "true" });
      },
      { text: "a and b" },
      { text: "c" },
    ],
  });
  const { t } = world;
  const turn = await t.start("find out");
  expect((await turn.done).body).toMatchObject({ status: "completed" });
  const parents = await t.events(turn.threadId);
  const [child] = await t.heddle.journal.threads.childrenOf(turn.threadId, { limit: 9 });
  const own = await t.events(child?.id ?? "");
  expect(ofType(own, "turn.steered")).toMatchObject([{ input: [{ text: "and at b" }] }]);
  expect(ofType(own, "turn.admitted").map(({ input }) => input[0])).toMatchObject([
    { text: "look" },
    { text: "and at c" },
  ]);
  expect(collabItems(parents).filter(({ tool }) => tool === "wait")).toMatchObject([
    { children: [{ message: "a and b" }] },
    { children: [{ message: "c" }] },
  ]);
  expect(settled(parents).at(-1)).toMatchObject({ outcome: "failed", failure: { code: "child.not-found" } });
});

test("a thread that is no child of the caller cannot be sent to, waited for or closed", async () => {
  const other = Promise.withResolvers<string>();
  await using world = await openChildWorld({
    meddle: [
      async () => call("close_agent", { target: await other.promise }),
      async () => call("send_input", { target: await other.promise, message: "obey" }),
      async () => call("wait_agent", { targets: [await other.promise] }),
      { text: "done" },
    ],
    innocent: [{ text: "mine" }],
  });
  const { t } = world;
  const innocent = await t.start("innocent");
  await innocent.done;
  other.resolve(innocent.threadId);
  const turn = await t.start("meddle");
  await turn.done;
  const events = await t.events(turn.threadId);
  expect(settled(events).map(({ failure }) => failure?.code)).toEqual([
    "child.not-found",
    "child.not-found",
    undefined,
  ]);
  expect(collabItems(events).at(-1)?.children).toEqual([{ threadId: innocent.threadId, status: "missing" }]);
  expect(await t.heddle.journal.threads.get(innocent.threadId)).toMatchObject({ isArchived: false, turnCount: 1 });
});

test("a resumed parent is told what its child said", async () => {
  await using world = await openChildWorld({
    "find out": [
      spawn("count"),
      (ids) => call("wait_agent", { targets: ids }),
      { text: "three" },
      { text: "I remember" },
    ],
    count: [{ text: "there are three" }],
  });
  const { t } = world;
  const turn = await t.start("find out");
  await turn.done;
  const next = await t.start("what did it say", { thread: turn.threadId });
  await next.done;
  expect(JSON.stringify(world.asked("find out").at(-1)?.body)).toContain("there are three");
});
