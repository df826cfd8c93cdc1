import path from "node:path";
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, isEndOf, KEY, list, pointAt, serve, startThread, text } from "../../test/app-server-client.ts";
import { openWorld, run } from "../../test/heddle-process.ts";

const SERVER = path.join(import.meta.dirname, "../../../agent/test/mcp-stdio-in-child.ts");
const MARKETPLACE = "workspace/.agents/plugins/marketplace.json";
const FOLDER = "workspace/plugins/hello";

test("a thread does without the plugins that its client disables, at every door, until they are enabled again", async () => {
  await using world = await openWorld();
  await using model = await startModelServer({ script: Array.from({ length: 7 }, () => ({ text: "ok" })) });
  await pointAt(world, model.url);
  const source = { source: "local", path: "./plugins/hello" };
  const marketplacePath = await world.file(
    MARKETPLACE,
    JSON.stringify({ name: "ours", plugins: [{ name: "hello", source }] }),
  );
  await world.file(`${FOLDER}/.codex-plugin/plugin.json`, JSON.stringify({ name: "hello" }));
  await world.file(`${FOLDER}/skills/greet/SKILL.md`, "---\nname: greet\ndescription: greets\n---\nHi\n");
  const fix = { command: process.execPath, args: [SERVER, "good"] };
  await world.file(`${FOLDER}/.mcp.json`, JSON.stringify({ mcpServers: { fix } }));
  const ofPlugin = (): readonly boolean[] => {
    const asked = JSON.stringify(model.requests.at(-1)?.body);
    return ["hello:greet", "mcp__fix__"].map((name) => asked.includes(name));
  };
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  await client.call("plugin/install", { marketplacePath, pluginName: "hello" });
  async function turn(threadId: string, more: object = {}): Promise<readonly boolean[]> {
    const begun = await client.call("turn/start", { threadId, input: [{ type: "text", text: "go" }], ...more });
    await client.waitFor((wire) => isEndOf(wire, text(begun, "turn.id")));
    return ofPlugin();
  }
  const servers = async (threadId: string): Promise<readonly unknown[]> =>
    list(await client.call("mcpServerStatus/list", { threadId }), "data").map((one) => at(one, "name"));
  const [first, other, third] = [await startThread(client), await startThread(client), await startThread(client)];
  const disabledPluginIds = ["hello@ours"];

  expect(await turn(first, { disabledPluginIds })).toEqual([false, false]);
  expect(await turn(first)).toEqual([false, false]);
  expect(await servers(first)).toEqual([]);
  expect(await turn(other)).toEqual([true, true]);
  expect(await client.call("thread/resume", { threadId: first })).toMatchObject({ disabledPluginIds });
  expect(await client.call("thread/fork", { threadId: first })).toMatchObject({ disabledPluginIds });
  expect((await run(["exec", "resume", first, "again"], { world, env: KEY })).code).toBe(0);
  expect(ofPlugin()).toEqual([false, false]);

  const from = client.received.length;
  await client.call("thread/settings/update", { threadId: first, disabledPluginIds: [] });
  const updated = await client.waitFor(({ method }) => method === "thread/settings/updated", from);
  expect(at(updated.params, "threadSettings.disabledPluginIds")).toEqual([]);
  expect(await turn(first)).toEqual([true, true]);
  expect(await servers(first)).toEqual(["fix"]);

  await client.call("thread/settings/update", { threadId: third, disabledPluginIds });
  expect(await turn(third)).toEqual([false, false]);
  const many = Array.from({ length: 201 }, (_, index) => `p${index}@ours`);
  expect(
    (await client.ask("thread/settings/update", { threadId: third, disabledPluginIds: many })).error,
  ).toMatchObject({
    code: -32600,
    message: "at most 200 plugins can be disabled for a thread",
  });
});
