import { expect, test } from "vitest";
import { at, list, refused, text } from "../../test/chat-client.ts";
import { codexClient, openChatWorld } from "../../test/chat-world.ts";

const NONE = "00000000-0000-0000-0000-000000000000";

test("attachments are added once, listed, found by what they name, removed, and deleted with their thread", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const other = await codexClient(world);
  const start = async (): Promise<string> =>
    text(await client.call("thread/start", { cwd: world.workspace }), "thread.id");
  const [threadId, second] = [await start(), await start()];
  const add = (identityKey: string, payload: unknown, thread = threadId) =>
    client.call("thread/attachment/add", { threadId: thread, attachmentType: "pr", identityKey, payload });
  // At once, from two connections: one of them is the first.
  const both = await Promise.all([
    add("k1", { a: [1, null] }),
    other.call("thread/attachment/add", {
      threadId,
      attachmentType: "pr",
      identityKey: "k1",
      payload: { a: [1, null] },
    }),
  ]);
  expect(both.map((answer) => text(answer, "outcome")).toSorted()).toEqual(["created", "existing"]);
  const attachment = at(both[0], "attachment");
  expect(both.map((answer) => at(answer, "attachment"))).toEqual([attachment, attachment]);
  expect(attachment).toEqual({
    id: expect.any(String),
    attachmentType: "pr",
    identityKey: "k1",
    payload: { a: [1, null] },
    createdAt: expect.any(Number),
  });
  expect((await other.topic("thread/attachment/updated")).params).toMatchObject({
    threadId,
    attachmentType: "pr",
    identityKey: "k1",
    attachmentId: at(attachment, "id"),
    operation: "created",
  });
  await add("k2", null);
  await add("k1", "elsewhere", second);
  const keys = (page: unknown): readonly unknown[] => list(page, "data").map((entry) => at(entry, "identityKey"));
  const first = await client.call("thread/attachment/list", { threadId, limit: 1 });
  const rest = await client.call("thread/attachment/list", { threadId, cursor: at(first, "nextCursor") });
  expect([keys(first), keys(rest), at(rest, "data.0.payload")]).toEqual([["k1"], ["k2"], null]);
  const owners = async (params: object = {}): Promise<unknown> =>
    at(
      await client.call("thread/attachmentOwner/list", { attachmentType: "pr", identityKey: "k1", ...params }),
      "data",
    );
  const owner = (id: string, archived = false) => ({ threadId: id, archived });
  expect(await owners()).toEqual([threadId, second].toSorted().map((id) => owner(id)));
  await client.call("thread/archive", { threadId: second });
  expect([await owners({ archived: true }), await owners({ archived: false })]).toEqual([
    [owner(second, true)],
    [owner(threadId)],
  ]);
  const remove = { threadId, attachmentType: "pr", identityKey: "k1" };
  expect(await client.call("thread/attachment/remove", remove)).toEqual({});
  expect(await client.call("thread/attachment/remove", remove)).toEqual({});
  expect(keys(await client.call("thread/attachment/list", { threadId }))).toEqual(["k2"]);
  expect(await owners()).toEqual([owner(second, true)]);
  await client.call("thread/delete", { threadId: second });
  expect(await owners()).toEqual([]);
});

test("what cannot be attached is refused", async () => {
  await using world = await openChatWorld();
  const client = await codexClient(world);
  const threadId = text(await client.call("thread/start", { cwd: world.workspace }), "thread.id");
  const good = { threadId, attachmentType: "pr", identityKey: "k", payload: {} };
  const cases: readonly (readonly [object, string])[] = [
    [{ identityKey: "" }, "-32602 identityKey must not be empty"],
    [{ attachmentType: "" }, "-32602 attachmentType must not be empty"],
    [{ identityKey: "k".repeat(1025) }, "-32602 identityKey must not exceed 1024 characters"],
    [{ payload: "y".repeat(65_536) }, "-32602 attachment payload must not exceed 65536 bytes"],
    [{ threadId: NONE }, `-32602 thread not found: ${NONE}`],
    [{ payload: undefined }, "-32600 Invalid request: missing field `payload`"],
  ];
  for (const [wrong, message] of cases) {
    expect(await refused(client, "thread/attachment/add", { ...good, ...wrong })).toBe(message);
  }
  expect(await refused(client, "thread/attachment/list", { threadId, cursor: "x" })).toBe(
    "-32602 invalid pagination cursor",
  );
  expect(await client.call("thread/attachment/list", { threadId: NONE })).toEqual({ data: [], nextCursor: null });
});

test("turn/settings/update answers whether the turn can be asked by, and names what changes the rest", async () => {
  await using world = await openChatWorld({
    respond: ({ answers }) =>
      answers === 0
        ? { calls: [{ tool: "exec_command", args: { cmd: "sleep 60", yield_time_ms: 60_000 } }] }
        : { text: "done" },
  });
  const client = await codexClient(world);
  const threadId = text(await client.call("thread/start", { cwd: world.workspace }), "thread.id");
  const input = [{ type: "text", text: "go" }];
  const turnId = text(await client.call("turn/start", { threadId, input }), "turn.id");
  const good = { threadId, turnId, approvalsReviewer: "user" };
  const update = (more: object) => client.call("turn/settings/update", { ...good, ...more });
  expect(await update({})).toEqual({ status: "applied" });
  expect(await update({ turnId: "other" })).toEqual({ status: "targetUnavailable" });
  const feature = "-32600 turn settings updates require the step_model_switching feature; use thread/settings/update";
  const cases: readonly (readonly [object, string])[] = [
    [{ effort: "low" }, feature],
    [{ serviceTier: null }, feature],
    [{ approvalsReviewer: null }, feature],
    [{ effort: "" }, "-32600 Invalid request: reasoning_effort must not be empty"],
    [{ approvalsReviewer: "auto_review" }, "-32600 no model reviews approvals here: approvalsReviewer is `user`"],
    [{ threadId: NONE }, `-32600 thread not found: ${NONE}`],
  ];
  for (const [more, message] of cases) {
    expect(await refused(client, "turn/settings/update", { ...good, ...more })).toBe(message);
  }
  expect(await refused(client, "turn/settings/update", { ...good, cwd: "/" })).toContain("unknown field `cwd`");
  await client.call("turn/interrupt", { threadId, turnId });
  await client.topic("turn/completed");
  expect(await update({})).toEqual({ status: "targetUnavailable" });
});
