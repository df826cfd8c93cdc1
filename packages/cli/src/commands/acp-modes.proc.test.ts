/** What an editor sets, and what other doors set for it: modes, models, names, answers. */
import { stat } from "node:fs/promises";
import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { newSession, openAcp, serveAcp, textPrompt } from "../../test/acp-client.ts";
import { at, command, connectTo, list, pointAt, serveOnSocket, text } from "../../test/app-server-client.ts";
import { eventsOf } from "../../test/hop-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

test("a mode is an envelope: chosen before the first turn, hopped to after it, refused where no edge leads", async () => {
  const calls = [command("touch made")];
  await using opened = await openAcp({ script: [{ calls }, { text: "1" }, { calls }, { text: "2" }] });
  const { client, sessionId, world } = opened;
  const set = (modeId: string) => client.ask("session/set_mode", { sessionId, modeId });
  expect((await set("nothing")).error).toMatchObject({ data: { code: "envelope.unknown" } });
  expect((await set("explore")).result).toEqual({});
  await client.call("session/prompt", { sessionId, prompt: textPrompt("look") });
  await expect(stat(path.join(world.workspace, "made"))).rejects.toThrow();
  expect((await set("deploy")).error).toMatchObject({
    data: { code: "hop.no-edge" },
    message: expect.stringContaining("no edge leads from explore to deploy"),
  });
  const from = client.received.length;
  expect((await set("edit")).result).toEqual({});
  const changed = await client.update("current_mode_update", from);
  expect(at(changed, "params.update.currentModeId")).toBe("edit");
  await client.call("session/prompt", { sessionId, prompt: textPrompt("work") });
  await stat(path.join(world.workspace, "made"));
  const entered = await eventsOf(world, sessionId, "envelope.entered");
  expect(entered.map(({ body }) => body.envelope.id)).toEqual(["explore", "edit"]);
});

test("a hop while a turn runs is refused as busy", async () => {
  await using opened = await openAcp(
    { script: [{ calls: [command("sleep 30")] }] },
    { args: ["--envelope", "explore"] },
  );
  const { client, sessionId } = opened;
  const id = client.request("session/prompt", { sessionId, prompt: textPrompt("go") });
  await client.update("tool_call");
  expect((await client.ask("session/set_mode", { sessionId, modeId: "edit" })).error).toMatchObject({
    data: { code: "hop.busy" },
  });
  client.note("$/cancel_request", { requestId: id });
  expect((await client.answerTo(id)).result).toMatchObject({ stopReason: "cancelled" });
});

test("a ceiling of the command holds for every session", async () => {
  await using opened = await openAcp(
    { script: [{ text: "1" }] },
    { args: ["--envelope", "explore", "--ceiling", "explore"] },
  );
  const { client, sessionId } = opened;
  const set = (modeId: string) => client.ask("session/set_mode", { sessionId, modeId });
  expect((await set("edit")).error).toMatchObject({ data: { code: "ceiling.exceeded" } });
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect((await set("edit")).error).toMatchObject({ data: { code: "ceiling.exceeded" } });
});

test("a model and an effort are chosen by option, and by the method of earlier clients", async () => {
  await using opened = await openAcp({ respond: () => ({ text: "ok" }) });
  const { client, sessionId, model } = opened;
  const option = (configId: string, value: unknown) =>
    client.ask("session/set_config_option", { sessionId, configId, value });
  const values = (answer: unknown): unknown[] =>
    list(answer, "result.configOptions").map((one) => at(one, "currentValue"));
  expect(values(await option("model", "gpt-5.4")).slice(1)).toEqual(["gpt-5.4", "default"]);
  expect(values(await option("effort", "high")).slice(1)).toEqual(["gpt-5.4", "high"]);
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect(model.requests.at(-1)?.body).toMatchObject({ model: "gpt-5.4", reasoning: { effort: "high" } });
  expect(values(await option("effort", "default")).slice(1)).toEqual(["gpt-5.4", "default"]);
  expect(await client.call("session/set_model", { sessionId, modelId: "gpt-5.5" })).toEqual({});
  await client.call("session/prompt", { sessionId, prompt: textPrompt("go") });
  expect(model.requests.at(-1)?.body).toMatchObject({ model: "gpt-5.5" });
  expect((await option("taste", "sweet")).error).toMatchObject({ code: -32_602 });
  expect((await option("mode", true)).error).toMatchObject({ code: -32_602 });
});

test("what other doors do is seen: names, settings, hops, input, and answers, which withdraw the question", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({
    respond: ({ number }) => (number === 1 ? { calls: [command("touch made")] } : { text: `answer ${number}` }),
  });
  await pointAt(world, model.url);
  await using served = serveAcp(["-c", "approval_policy=untrusted", "--envelope", "explore"], { world });
  const { client } = served;
  await client.initialize();
  const sessionId = await newSession(client, world.workspace);
  await client.call("session/prompt", { sessionId, prompt: textPrompt("begin") });
  await using server = await serveOnSocket(world);
  using other = await connectTo(server.socket);
  await other.client.initialize({ experimentalApi: true });
  await other.client.call("thread/resume", { threadId: sessionId, excludeTurns: true });

  await other.client.call("thread/name/set", { threadId: sessionId, name: "Named elsewhere" });
  expect(at(await client.update("session_info_update"), "params.update.title")).toBe("Named elsewhere");
  await other.client.call("thread/settings/update", { threadId: sessionId, model: "gpt-5.4" });
  const options = await client.update("config_option_update");
  expect(list(options, "params.update.configOptions").map((one) => at(one, "currentValue"))).toContain("gpt-5.4");
  await other.client.call("thread/hop", { threadId: sessionId, to: "edit", reason: "found it" });
  expect(at(await client.update("current_mode_update"), "params.update.currentModeId")).toBe("edit");

  const id = client.request("session/prompt", { sessionId, prompt: textPrompt("work") });
  const asked = await client.waitFor(({ method }) => method === "session/request_permission");
  const question = await other.client.note("item/commandExecution/requestApproval");
  other.client.send({ id: question.id, result: { decision: "accept" } });
  const withdrawn = await client.waitFor(({ method }) => method === "$/cancel_request");
  expect(at(withdrawn, "params.requestId")).toBe(asked.id);
  expect((await client.answerTo(id)).result).toMatchObject({ stopReason: "end_turn" });
  await stat(path.join(world.workspace, "made"));

  const from = client.received.length;
  const input = [{ type: "text", text: "said elsewhere" }];
  await other.client.call("turn/start", { threadId: sessionId, input });
  await client.update("agent_message_chunk", from);
  expect(client.said("user_message_chunk", from)).toBe("said elsewhere");
  expect(text(client.updates("agent_message_chunk", from)[0], "content.text")).toContain("answer");
});

test("the help says what there is to say, and an argument too many is refused", async () => {
  await using world = await openWorld();
  const help = await run(["acp", "--help"], { world });
  expect(help).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("heddle acp --envelope explore --ceiling edit"),
  });
  const wrong = await run(["acp", "now"], { world });
  expect(wrong).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("takes no arguments") });
  await using served = serveAcp(["--envelope", "nothing"], { world });
  await served.client.initialize();
  const begun = await served.client.ask("session/new", { cwd: world.workspace, mcpServers: [] });
  expect(begun.error).toMatchObject({ data: { code: "envelope.unknown" } });
});
