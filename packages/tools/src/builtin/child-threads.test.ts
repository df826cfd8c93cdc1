import { HeddleError, type ChildState } from "@heddle/protocol";
import { expect, test } from "vitest";
import { openFixture } from "../../test/fixture.ts";
import type { ChildRequest, ChildThreads } from "../calls/child-threads.ts";
import { envelopeFor } from "../calls/envelopes.ts";
import { toolsFor } from "../calls/registry.ts";
import { childToolset } from "./child-toolset.ts";

const CHILD = "0199c0de-0000-7000-8000-000000000001";
const options = { workspace: "/w", writableRoots: [], networkAccess: false, approval: "never", masked: [] } as const;

/** An engine that has one child, in one state. */
function engine(state: Omit<ChildState, "threadId">): { readonly children: ChildThreads; readonly asked: unknown[] } {
  const asked: unknown[] = [];
  const child: ChildState = { threadId: CHILD, ...state };
  const known = (threadId: string): ChildState => {
    if (threadId === CHILD) return child;
    throw new HeddleError("child.not-found", `"${threadId}" is not an agent of this thread`);
  };
  const children: ChildThreads = {
    threadId: "parent",
    async start(request: ChildRequest, { itemId }) {
      asked.push({ ...request, itemId });
      return { threadId: CHILD, status: "running" };
    },
    async send(message) {
      asked.push(message);
      return { ...known(message.threadId), turnId: "turn-2" };
    },
    async wait(threadIds, { timeoutMs }) {
      asked.push({ threadIds, timeoutMs });
      return threadIds.map(known);
    },
    close: async (threadId) => known(threadId),
  };
  return { children, asked };
}

test.each([
  ["openai", ["spawn_agent", "send_input", "wait_agent", "close_agent"]],
  ["anthropic", ["task", "send_message", "task_output", "task_stop"]],
  ["gemini", ["spawn_agent", "send_input", "wait_agent", "close_agent"]],
  ["other", ["spawn_agent", "send_input", "wait_agent", "close_agent"]],
] as const)("%s is offered the tools by the names it knows, where threads may be started", (family, expected) => {
  const children = childToolset(engine({ status: "running" }).children);
  const names = (mayStartThreads: boolean, more = {}): string[] => {
    const envelope = envelopeFor({ ...options, mode: "workspace-write", mayStartThreads });
    return toolsFor(family, envelope, more).offered.map(({ name }) => name);
  };
  expect(names(true, { children }).filter((name) => !names(false).includes(name))).toEqual(expected);
  expect(names(false, { children })).toEqual(names(false));
  expect(names(true)).toEqual(names(false));
});

test("the calls through dispatch: arguments in, an item with the facts, and an answer as Codex gives it", async () => {
  const { children, asked } = engine({ status: "completed", message: "found" });
  await using f = await openFixture({ sandbox: "none", children });
  const start = await f.call("spawn_agent", { message: "look", model: "small", sandbox: "read-only" });
  const common = { type: "collabToolCall", senderThreadId: "parent", threadIds: [CHILD] };
  expect(start).toMatchObject({
    kind: "ok",
    item: { ...common, tool: "start", status: "completed", prompt: "look", model: "small" },
    output: [{ text: JSON.stringify({ agent_id: CHILD, nickname: null }) }],
  });
  expect(f.started[0]).toMatchObject({
    item: { tool: "start", status: "inProgress", threadIds: [], prompt: "look" },
    intent: { tool: "spawn_agent", isReadOnly: false },
  });
  expect(await f.call("wait_agent", { targets: [CHILD, CHILD], timeout_ms: 5 })).toMatchObject({
    item: { ...common, tool: "wait", children: [{ threadId: CHILD, status: "completed", message: "found" }] },
    output: [{ text: JSON.stringify({ status: { [CHILD]: { completed: "found" } }, timed_out: false }) }],
  });
  expect(await f.call("send_input", { target: CHILD, message: "more", interrupt: true })).toMatchObject({
    item: { ...common, tool: "send", prompt: "more" },
    output: [{ text: JSON.stringify({ submission_id: "turn-2" }) }],
  });
  expect(await f.call("close_agent", { target: CHILD })).toMatchObject({
    item: { ...common, tool: "close", children: [{ threadId: CHILD, status: "closed" }] },
    output: [{ text: JSON.stringify({ previous_status: { completed: "found" } }) }],
  });
  expect(asked).toEqual([
    { prompt: "look", model: "small", effort: undefined, sandboxMode: "read-only", itemId: "item_call_1" },
    { threadIds: [CHILD], timeoutMs: 1000 },
    { threadId: CHILD, text: "more", isUrgent: true },
  ]);
});

test.each([
  [{ status: "running" }, {}, true],
  [{ status: "interrupted" }, { [CHILD]: "interrupted" }, false],
  [{ status: "failed", message: "why" }, { [CHILD]: { errored: "why" } }, false],
  [{ status: "closed" }, { [CHILD]: "shutdown" }, false],
  [{ status: "missing" }, { [CHILD]: "not_found" }, false],
] as const)("a child that is %j is told as %j, timed out: %j", async (state, status, timed_out) => {
  const { children } = engine(state);
  await using f = await openFixture({ sandbox: "none", children });
  expect(await f.call("wait_agent", { targets: [CHILD] })).toMatchObject({
    output: [{ text: JSON.stringify({ status, timed_out }) }],
  });
});

test("a refusal of the engine fails the call with its code, and wrong arguments never reach it", async () => {
  const { children, asked } = engine({ status: "running" });
  await using f = await openFixture({ sandbox: "none", children });
  expect(await f.call("close_agent", { target: "another" })).toMatchObject({
    kind: "failed",
    failure: { code: "child.not-found" },
    item: { tool: "close", status: "failed", error: '"another" is not an agent of this thread' },
  });
  for (const args of [{}, { message: "" }, { message: "x", sandbox: "everything" }]) {
    expect(await f.call("spawn_agent", args)).toMatchObject({ failure: { code: "tool.invalid-arguments" } });
  }
  expect(asked).toEqual([]);
});

test("D2: where the envelope has no effect `spawn` there is no such tool, whatever is asked", async () => {
  const { children, asked } = engine({ status: "running" });
  await using f = await openFixture({ sandbox: "none", children, mayStartThreads: false });
  expect(await f.call("spawn_agent", { message: "look" })).toMatchObject({
    kind: "denied",
    failure: { code: "tool.unknown" },
  });
  expect(asked).toEqual([]);
});
