/** C2, C3, C7–C9, C11, C14: what a chat does, over a real socket. */
import { readdir } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { at, list, text } from "../../test/chat-client.ts";
import { openChatWorld } from "../../test/chat-world.ts";

const sh = (cmd: string) => ({ tool: "exec_command", args: { cmd } });

test("a message becomes a turn that is told from beginning to end, in numbers without a gap", async () => {
  await using world = await openChatWorld({ script: [{ text: "hello there", reasoning: "hm" }] });
  const { client, chatId } = await world.chat();
  const sent = await client.call("chat.message.send", { chat_id: chatId, message: "hi" });
  const end = await client.end(text(sent, "turn_id"));
  expect(end.params).toMatchObject({ status: "completed", chat_id: chatId, threadId: chatId, schema: 1 });
  expect(client.events.map(({ method }) => method)).toEqual([
    "chat.thread.updated",
    "chat.turn.started",
    "chat.item.started",
    "chat.item.completed",
    "chat.item.started",
    "chat.item.completed",
    "chat.item.started",
    "chat.item.completed",
    "chat.token.usage.updated",
    "chat.turn.completed",
  ]);
  expect(client.events.map(({ params }) => params?.["seq"])).toEqual(client.events.map((_, index) => index + 1));
  const mine = client.events.find(({ params }) => at(params, "item.type") === "userMessage");
  expect(at(mine, "params.item.id")).toBe(text(sent, "item_id"));
  const deltas = client.received.filter(({ method }) => method === "chat.message.delta");
  expect(deltas.map(({ params }) => text(params, "delta")).join("")).toBe("hello there");
  const listed = await client.call("chat.list");
  expect(at(listed, "chats.0")).toMatchObject({ chat_id: chatId, last_seq: 10, title: "hi", active_turn_id: null });
  expect(world.logged).toEqual([]);
});

test("what an agent proposes in mode plan is a plan beside its message, told piece by piece", async () => {
  const plan = "- one\n";
  await using world = await openChatWorld({ script: [{ text: `Look.\n<proposed_plan>\n${plan}</proposed_plan>` }] });
  const { client, chatId } = await world.chat();
  const message = { chat_id: chatId, message: "hi", collaboration_mode: { mode: "plan" } };
  await client.end(text(await client.call("chat.message.send", message), "turn_id"));
  const told = client.events.filter(({ params }) => at(params, "item.type") === "plan");
  expect(told.map(({ method, params }) => [method, at(params, "item.text"), at(params, "item.status")])).toEqual([
    ["chat.item.started", "", "inProgress"],
    ["chat.item.completed", plan, "completed"],
  ]);
  const isOfPlan = (itemId: unknown): boolean => itemId === at(told, "0.params.itemId");
  const deltas = client.received.filter(
    ({ method, params }) => method === "chat.message.delta" && isOfPlan(params?.["itemId"]),
  );
  expect(deltas.map(({ params }) => text(params, "delta")).join("")).toBe(plan);
  const read = await client.call("chat.thread.read", { chat_id: chatId, include_turns: true });
  expect(list(read, "thread.turns.0.items")).toMatchObject([
    { type: "userMessage" },
    { type: "agentMessage", text: "Look.\n" },
    { type: "plan", text: plan, status: "completed" },
  ]);
});

test("C7 the same client_message_id again is the same turn", async () => {
  await using world = await openChatWorld({ script: [{ text: "one" }] });
  const { client, chatId } = await world.chat();
  const message = { chat_id: chatId, message: "hi", client_message_id: "m1" };
  const answers = await Promise.all([1, 2, 3].map(() => client.call("chat.message.send", message)));
  const turnIds = new Set(answers.map((answer) => text(answer, "turn_id")));
  expect(turnIds.size).toBe(1);
  expect(answers.filter((answer) => at(answer, "duplicate") === true)).toHaveLength(2);
  await client.end([...turnIds][0] ?? "");
  const again = await (await world.client()).call("chat.message.send", message);
  expect(again).toMatchObject({ duplicate: true, turn_id: [...turnIds][0] });
  expect(await client.ask("chat.message.send", { ...message, message: "other" })).toMatchObject({
    error: { data: { code: "store.id-conflict" } },
  });
  expect(world.model.requests).toHaveLength(1);
});

test("C8 a second client sees and answers the question of the first; the second answer is told that it is", async () => {
  await using world = await openChatWorld({
    script: [{ calls: [sh("touch made")] }, { text: "done" }],
  });
  const { client, chatId } = await world.chat({ approval_policy: "untrusted" });
  const other = await world.client();
  await other.call("events.subscribe", { topic: "chat.approval.*" });
  const { turn_id } = (await client.call("chat.message.send", { chat_id: chatId, message: "go" })) as {
    turn_id: string;
  };
  const asked = await other.topic("chat.approval.required");
  const request_id = text(asked, "params.request_id");
  expect(asked.params).toMatchObject({ kind: "command", command: "touch made", codex_request_id: request_id });
  expect(at(await client.call("chat.list"), "chats.0")).toMatchObject({
    pending_approvals: 1,
    active_turn_id: turn_id,
  });
  const seen = await client.call("chat.thread.read", { chat_id: chatId });
  expect(list(seen, "thread.pending_approvals")).toHaveLength(1);
  expect(await other.call("chat.approval.respond", { request_id, decision: "accept" })).toEqual({ ok: true });
  expect(await client.call("chat.approval.respond", { codex_request_id: request_id, decision: "decline" })).toEqual({
    ok: true,
    already: true,
  });
  await client.end(turn_id);
  expect(await client.topic("chat.approval.resolved")).toMatchObject({
    params: { decision: "accept", by: "user:owner" },
  });
  expect(await client.call("chat.approval.respond", { request_id, decision: "accept" })).toEqual({
    ok: true,
    already: true,
  });
  expect(await client.ask("chat.approval.respond", { request_id: "apr_none", decision: "accept" })).toMatchObject({
    error: { code: -32002 },
  });
});

test("C9 cancel: one end, the words so far are kept, nothing stays running, and what waits continues", async () => {
  await using world = await openChatWorld({
    respond: ({ number }) => (number === 0 ? { text: "some words so far", calls: [sh("sleep 60")] } : { text: "next" }),
  });
  const { client, chatId } = await world.chat();
  const send = (message: string) => client.call("chat.message.send", { chat_id: chatId, message });
  const first = text(await send("one"), "turn_id");
  await client.waitFor(({ params }) => at(params, "item.type") === "commandExecution");
  const queued = await send("two");
  expect(queued).toMatchObject({ queued: true, item_id: null });
  const dropped = text(await send("three"), "turn_id");
  expect(await client.call("chat.cancel", { chat_id: chatId, turn_id: dropped })).toMatchObject({
    status: "interrupted",
  });
  expect(await client.call("chat.cancel", { chat_id: chatId })).toEqual({
    ok: true,
    turn_id: first,
    status: "interrupted",
  });
  expect(await client.call("chat.cancel", { chat_id: chatId, turn_id: first })).toMatchObject({
    status: "interrupted",
  });
  await client.end(text(queued, "turn_id"));
  const ends = client.events.filter(({ method }) => method === "chat.turn.completed");
  expect(ends.map(({ params }) => [params?.["turnId"], params?.["status"]])).toEqual([
    [dropped, "interrupted"],
    [first, "interrupted"],
    [text(queued, "turn_id"), "completed"],
  ]);
  const { thread } = (await client.call("chat.thread.read", { chat_id: chatId, include_turns: true })) as {
    thread: { turns: { id: string; items: { type: string; status?: string; text?: string }[] }[] };
  };
  const stopped = thread.turns.find(({ id }) => id === first);
  expect(stopped?.items.find(({ type }) => type === "agentMessage")?.text).toBe("some words so far");
  expect(stopped?.items.find(({ type }) => type === "commandExecution")?.status).toBe("interrupted");
  expect(thread.turns.flatMap(({ items }) => items).some(({ status }) => status === "inProgress")).toBe(false);
  expect(await client.ask("chat.cancel", { chat_id: chatId })).toMatchObject({ error: { code: -32002 } });
});

test("a failed turn has one end, with its reason (two ends were a fault of the server this replaces)", async () => {
  await using world = await openChatWorld({
    faults: () => ({ kind: "status", status: 400, body: { error: { message: "no" } } }),
  });
  const { client, chatId } = await world.chat();
  const { turn_id } = (await client.call("chat.message.send", { chat_id: chatId, message: "x" })) as {
    turn_id: string;
  };
  const end = await client.end(turn_id);
  expect(end.params).toMatchObject({ status: "failed", error: { code: "provider.rejected", retryable: false } });
  await client.call("chat.list");
  expect(client.events.filter(({ method }) => method === "chat.turn.completed")).toHaveLength(1);
});

test("a run goes on without the client that asked for it, and its words and calls keep their order", async () => {
  await using world = await openChatWorld({
    respond: ({ answers }) =>
      answers === 0 ? { text: "before", calls: [sh("echo x")] } : { text: "after", delayMs: 100 },
  });
  const { client, chatId } = await world.chat();
  const turnId = text(await client.call("chat.message.send", { chat_id: chatId, message: "x" }), "turn_id");
  client[Symbol.dispose]();
  const later = await world.client();
  await later.call("events.subscribe", { topic: "chat.*", after: { [chatId]: 0 } });
  expect(await later.end(turnId)).toMatchObject({ params: { status: "completed" } });
  const view = await later.call("chat.thread.read", { chat_id: chatId, include_turns: true });
  expect(list(view, "thread.turns.0.items").map((item) => at(item, "type"))).toEqual([
    "userMessage",
    "agentMessage",
    "commandExecution",
    "agentMessage",
  ]);
});

test("inject adds to the running turn; without one it begins a turn", async () => {
  await using world = await openChatWorld({
    respond: ({ answers }) => (answers === 0 ? { calls: [sh("sleep 0.5")] } : { text: "done" }),
  });
  const { client, chatId } = await world.chat();
  const turnId = text(
    await client.call("chat.message.send", { chat_id: chatId, message: "x", inject: true }),
    "turn_id",
  );
  await client.waitFor(({ params }) => at(params, "item.type") === "commandExecution");
  const more = { chat_id: chatId, message: "and y", inject: true, client_message_id: "i1" };
  expect(await client.call("chat.message.send", more)).toEqual({
    chat_id: chatId,
    turn_id: turnId,
    item_id: null,
    queued: true,
  });
  expect(await client.call("chat.message.send", more)).toMatchObject({ turn_id: turnId, duplicate: true });
  await client.end(turnId);
  const mine = client.events.filter(
    ({ method, params }) => method === "chat.item.completed" && at(params, "item.type") === "userMessage",
  );
  expect(mine.map(({ params }) => at(params, "item.content.0.text"))).toEqual(["x", "and y"]);
});

test("C11 archived chats are hidden and come back; deleting takes everything, the files of long outputs too", async () => {
  await using world = await openChatWorld({ script: [{ calls: [sh("seq 1 100000")] }, { text: "one" }] });
  const { client, chatId } = await world.chat();
  const files = (): Promise<string[]> => readdir(path.join(world.root, "home", "blobs")).catch(() => []);
  await client.end(text(await client.call("chat.message.send", { chat_id: chatId, message: "x" }), "turn_id"));
  expect(await files()).toHaveLength(1);
  await client.call("chat.thread.archive", { chat_id: chatId });
  expect(list(await client.call("chat.list"), "chats")).toEqual([]);
  expect(at(await client.call("chat.list", { status: "archived" }), "chats.0.chat_id")).toBe(chatId);
  expect(await client.ask("chat.message.send", { chat_id: chatId, message: "x" })).toMatchObject({
    error: { code: -32602 },
  });
  await client.call("chat.thread.unarchive", { chatId });
  expect(list(await client.call("chat.list"), "chats")).toHaveLength(1);
  await client.call("chat.thread.delete", { chat_id: chatId });
  await client.waitFor(({ params }) => params?.["status"] === "deleted");
  expect(list(await client.call("chat.list"), "chats")).toEqual([]);
  expect(await client.ask("chat.thread.read", { chat_id: chatId })).toMatchObject({ error: { code: -32002 } });
  const rows = await world.heddle.journal.threads.turns(chatId);
  expect(rows).toEqual([]);
  expect(await files()).toEqual([]);
  await expect(world.heddle.journal.read({ stream: chatId, after: 0 })).rejects.toMatchObject({ code: "store.purged" });
});

test("C14 settings merge, null removes a key, and a change counts from the next turn on", async () => {
  await using world = await openChatWorld({
    respond: ({ answers }) => (answers === 0 ? { calls: [sh("sleep 0.3")] } : { text: "done" }),
  });
  const { client, chatId } = await world.chat({ model: "gpt-a", effort: "low" });
  const update = (settings: unknown) => client.call("chat.settings.update", { chat_id: chatId, settings });
  const first = text(await client.call("chat.message.send", { chat_id: chatId, message: "x" }), "turn_id");
  await client.waitFor(({ params }) => at(params, "item.type") === "commandExecution");
  expect(await update({ model: "gpt-b", approvalPolicy: "on-request" })).toEqual({
    ok: true,
    settings: { model: "gpt-b", effort: "low", approval_policy: "on-request" },
  });
  expect(await update({ effort: null })).toEqual({
    ok: true,
    settings: { model: "gpt-b", approval_policy: "on-request" },
  });
  expect(await client.ask("chat.settings.update", { chat_id: chatId, settings: { effort: "huge" } })).toMatchObject({
    error: { code: -32602, data: { field: "settings.effort" } },
  });
  await client.end(first);
  await client.end(text(await client.call("chat.message.send", { chat_id: chatId, message: "y" }), "turn_id"));
  const once = { chat_id: chatId, message: "z", model: "gpt-c" };
  await client.end(text(await client.call("chat.message.send", once), "turn_id"));
  await client.end(text(await client.call("chat.message.send", { chat_id: chatId, message: "w" }), "turn_id"));
  const models = world.model.requests.map(({ body }) => at(body, "model"));
  expect(models).toEqual(["gpt-a", "gpt-a", "gpt-b", "gpt-c", "gpt-b"]);
});

test("B6 chat.thread.summarize asks beside the chat: words for whoever asked, what it took for the record", async () => {
  const isSummary = (body: unknown): boolean => JSON.stringify(body).includes("You sum up conversations");
  await using world = await openChatWorld({
    background: { model: "small" },
    respond: ({ body }) => ({ text: isSummary(body) ? "They spoke of a roof." : "fixed" }),
  });
  const { client, chatId } = await world.chat();
  expect(await client.call("chat.thread.summarize", { chat_id: chatId })).toMatchObject({ summary: null });
  const sent = await client.call("chat.message.send", { chat_id: chatId, message: "fix the roof" });
  await client.end(text(sent, "turn_id"));
  const before = await world.heddle.journal.threads.turns(chatId);
  const told = await client.call("chat.thread.summarize", { chat_id: chatId });
  expect(told).toEqual({ chat_id: chatId, thread_id: chatId, summary: "They spoke of a roof." });
  const events = await world.heddle.journal.read({ stream: chatId, after: 0, limit: 1000 });
  expect(JSON.stringify(events)).not.toContain("They spoke of a roof.");
  const ran = events.flatMap(({ body }) => (body.type === "background.ran" ? [body.purpose] : []));
  expect(ran).toContain("summary");
  expect(await world.heddle.journal.threads.turns(chatId)).toEqual(before);
});

test("chat.thread.summarize says that it is off where it is", async () => {
  await using world = await openChatWorld();
  const { client, chatId } = await world.chat();
  const { error } = await client.ask("chat.thread.summarize", { chat_id: chatId });
  expect(error).toMatchObject({ data: { code: "provider.configuration-required" } });
});
