/** Faults of the servers that chats came from, each of them held off by a test. Others are in chat, replay and contract. */
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { CANARY, startTestIssuer } from "@heddle/models/auth/testing";
import { expect, test } from "vitest";
import { at, list, text } from "../../test/chat-client.ts";
import { openChatWorld } from "../../test/chat-world.ts";

const sh = (cmd: string) => ({ tool: "exec_command", args: { cmd } });

test("an error is an error: its answer has no result, and nothing hides in one", async () => {
  await using world = await openChatWorld();
  const client = await world.client();
  const answer = await client.ask("chat.thread.read", { chat_id: "nobody" });
  expect(Object.keys(answer).sort()).toEqual(["error", "id"]);
  expect(answer.error).toMatchObject({ code: -32002, data: { code: "thread.not-found" } });
});

test("a message that waits is told as waiting; its turn begins when it begins", async () => {
  await using world = await openChatWorld({
    respond: ({ answers }) => (answers === 0 ? { calls: [sh("sleep 0.3")] } : { text: "done" }),
  });
  const { client, chatId } = await world.chat();
  const first = text(await client.call("chat.message.send", { chat_id: chatId, message: "one" }), "turn_id");
  const second = text(await client.call("chat.message.send", { chat_id: chatId, message: "two" }), "turn_id");
  const view = await client.call("chat.thread.read", { chat_id: chatId, include_turns: true });
  expect(list(view, "thread.turns").map((turn) => at(turn, "status"))).toEqual(["running", "queued"]);
  expect(at(await client.call("chat.list"), "chats.0")).toMatchObject({ status: "active", active_turn_id: first });
  await client.end(second);
  const told = client.events.flatMap(({ method, params }) =>
    method?.startsWith("chat.turn.") === true ? [[method, params?.["turnId"]]] : [],
  );
  expect(told).toEqual([
    ["chat.turn.started", first],
    ["chat.turn.queued", second],
    ["chat.turn.completed", first],
    ["chat.turn.started", second],
    ["chat.turn.completed", second],
  ]);
});

test("an answer that nobody can read is refused, and the question still waits", async () => {
  await using world = await openChatWorld({ script: [{ calls: [sh("touch x")] }, { text: "done" }] });
  const { client, chatId } = await world.chat({ approval_policy: "untrusted" });
  const turnId = text(await client.call("chat.message.send", { chat_id: chatId, message: "go" }), "turn_id");
  const request_id = text(await client.topic("chat.approval.required"), "params.request_id");
  expect(await client.ask("chat.approval.respond", { request_id, decision: "maybe" })).toMatchObject({
    error: { code: -32602, data: { field: "decision" } },
  });
  expect(list(await client.call("chat.thread.read", { chat_id: chatId }), "thread.pending_approvals")).toHaveLength(1);
  await client.call("chat.approval.respond", { request_id, decision: "cancel", note: "not today" });
  expect(await client.topic("chat.approval.resolved")).toMatchObject({
    params: { decision: "cancel", reason: "not today" },
  });
  expect(await client.end(turnId)).toMatchObject({ params: { status: "interrupted" } });
});

test("on-request and untrusted are two policies", async () => {
  await using world = await openChatWorld({
    respond: ({ answers }) => (answers === 0 ? { calls: [sh("touch x")] } : { text: "done" }),
  });
  const { client, chatId } = await world.chat({ approval_policy: "on-request" });
  await client.end(text(await client.call("chat.message.send", { chat_id: chatId, message: "go" }), "turn_id"));
  expect(client.topics()).not.toContain("chat.approval.required");
  const settings = (await world.heddle.lastSettings(chatId))?.approvalPolicy;
  expect(settings).toBe("on-request");
});

test("a name stays: it is stored, told, and in the lists", async () => {
  await using world = await openChatWorld();
  const { client, chatId } = await world.chat();
  expect(await client.call("chat.thread.rename", { chat_id: chatId, name: " My chat " })).toEqual({
    ok: true,
    title: "My chat",
  });
  await client.waitFor(({ params }) => params?.["title"] === "My chat" && params["title_source"] === "user");
  expect(at(await client.call("chat.list"), "chats.0.title")).toBe("My chat");
  expect(await client.ask("chat.thread.rename", { chat_id: chatId, title: "a\u001b[2Jb" })).toMatchObject({
    error: { code: -32602 },
  });
});

test("a fork has the past and the settings of its chat, and numbers of its own", async () => {
  await using world = await openChatWorld({ respond: () => ({ text: "said" }) });
  const { client, chatId } = await world.chat({ model: "gpt-a" });
  await client.end(text(await client.call("chat.message.send", { chat_id: chatId, message: "one" }), "turn_id"));
  const fork = text(await client.call("chat.thread.fork", { chat_id: chatId }), "chat_id");
  const view = await client.call("chat.thread.read", { chat_id: fork, include_turns: true });
  expect(list(view, "thread.turns")).toHaveLength(1);
  expect(at(view, "settings")).toEqual({ model: "gpt-a" });
  expect(at(view, "thread.last_seq")).toBe(2);
});

test("who may not have the whole machine gets it neither by a setting nor by waiting", async () => {
  await using world = await openChatWorld({ respond: () => ({ text: "said" }) });
  const { chatId } = await world.chat({ sandbox: "danger-full-access" });
  const user = await world.client("user");
  expect(await user.ask("chat.message.send", { chat_id: chatId, message: "x" })).toMatchObject({
    error: { code: -32001, data: { code: "door.forbidden" } },
  });
  expect(world.model.requests).toHaveLength(0);
});

test("a login keeps its device code in the server, and everybody hears that an account has changed", async () => {
  await using issuer = await startTestIssuer();
  await using world = await openChatWorld({
    env: { HEDDLE_TEST_OPENAI_ISSUER: issuer.url, HEDDLE_TEST_OPENAI_CODEX_API: issuer.url },
    accounts: [{ id: "openai-codex", isEnabled: true }],
  });
  const { client } = await world.chat();
  issuer.devicePolls("pending", "pending", "pending");
  const started = await client.call("chat.account.login.start", { provider: "openai_codex", method: "device" });
  expect(at(started, "session")).toMatchObject({ provider: "openai-codex", user_code: "ABCD-1234" });
  const { session } = started as { readonly session: unknown };
  expect(await client.call("chat.account.login.poll", { session })).toMatchObject({
    status: "pending",
    interval_secs: 5,
  });
  const login_id = text(started, "session.login_id");
  expect(await client.call("chat.account.login.cancel", { login_id })).toMatchObject({ status: "denied" });
  await client.waitFor(
    ({ method, params }) => method === "chat.account.updated" && params?.["provider"] === "openai-codex",
  );
  await client.call("chat.account.login.start", { provider: "openai", api_key: `sk-${CANARY}` });
  const status = await client.call("chat.account.read", { provider: "openai" });
  expect(at(status, "providers.0")).toMatchObject({ logged_in: true, health: "ready", key: "openai" });
  await client.call("chat.account.logout", { provider: "openai" });
  expect(at(await client.call("chat.account.read", { provider: "openai" }), "logged_in")).toBe(false);
  expect(JSON.stringify(client.received)).not.toContain(CANARY);
  expect(world.logged.join("\n")).not.toContain(CANARY);
});

test("a skill that is switched off stays off, and is shown as such", async () => {
  const off = new Set<string>();
  await using world = await openChatWorld({
    skills: {
      isEnabled: ({ name }) => !off.has(name),
      setEnabled: (name, isEnabled) => Promise.resolve(void (isEnabled ? off.delete(name) : off.add(name))),
    },
  });
  const folder = path.join(world.workspace, ".agents/skills/fix");
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "SKILL.md"), "---\nname: fix\ndescription: Fixes things\n---\nFix it.\n");
  const client = await world.client();
  const write = (params: unknown) => client.ask("chat.skills.config.write", params);
  const isOn = async (): Promise<unknown> => {
    const skills = list(await client.call("chat.skills.list"), "data.0.skills");
    return at(
      skills.find((skill) => at(skill, "name") === "fix"),
      "enabled",
    );
  };
  expect(await isOn()).toBe(true);
  expect(await write({ name: "fix", enabled: false })).toMatchObject({ result: { ok: true, enabled: false } });
  expect(await isOn()).toBe(false);
  expect(await write({ name: "fix", enabled: true })).toMatchObject({ result: { enabled: true } });
  expect(await isOn()).toBe(true);
  expect(await write({ name: "none", enabled: true })).toMatchObject({ error: { code: -32602 } });
});
