/** What `modelProvider/capabilities/read` says of searches is what the next turn that asks for one does. */
import { startModelServer } from "@heddle/models/testing";
import { expect, test } from "vitest";
import { at, KEY, runTurn, serve, startThread } from "../../test/app-server-client.ts";
import { openWorld } from "../../test/heddle-process.ts";

const NARROW = 'allowed_domains = ["example.com"]';

test.each([
  { of: "Responses", api: "responses", path: "/v1", model: "gpt-5.5", isSearching: true, tool: '"web_search"' },
  {
    of: "Responses, held to domains",
    api: "responses",
    path: "/v1",
    model: "gpt-5.5",
    narrow: NARROW,
    isSearching: true,
    tool: '"web_search"',
  },
  {
    of: "Anthropic",
    api: "anthropic",
    path: "/v1",
    model: "claude-test",
    isSearching: true,
    tool: '"web_search_20250305"',
  },
  { of: "Gemini 3", api: "gemini", path: "/v1beta", model: "gemini-3-test", isSearching: true, tool: '"googleSearch"' },
  {
    of: "Gemini 2, beside tools of others",
    api: "gemini",
    path: "/v1beta",
    model: "gemini-2.5-pro",
    isSearching: false,
  },
  {
    of: "Gemini 3, held to domains",
    api: "gemini",
    path: "/v1beta",
    model: "gemini-3-test",
    narrow: NARROW,
    isSearching: false,
  },
  { of: "chat completions", api: "chat", path: "/v1", model: "some-model", isSearching: false },
])("15.12: $of: searches the web: $isSearching", async ({ api, path, model, narrow, isSearching, tool = "" }) => {
  await using world = await openWorld();
  await using server = await startModelServer({ respond: () => ({ text: "ok" }) });
  const tables = [
    narrow === undefined ? "" : `[tools.web_search]\n${narrow}\n`,
    `[model_providers.mock]\nbase_url = "${server.url}${path}"\nwire_api = "${api}"\nenv_key = "MOCK_KEY"\n`,
  ];
  await world.file("home/config.toml", `model = "${model}"\nmodel_provider = "mock"\n${tables.join("")}`);
  await using served = serve([], { world, env: KEY });
  const { client } = served;
  await client.initialize({ experimentalApi: true });
  expect(await client.call("modelProvider/capabilities/read")).toEqual({
    imageGeneration: false,
    webSearch: isSearching,
  });
  const config = { web_search: "live" };
  const threadId = await startThread(client, { sandbox: "danger-full-access", approvalPolicy: "never", config });
  const { ended } = isSearching
    ? await runTurn(client, threadId, "weather?")
    : { ended: await client.ask("turn/start", { threadId, input: [{ type: "text", text: "weather?" }] }) };
  expect(at(ended, "params.turn.status") ?? at(ended, "error.data.code")).toBe(
    isSearching ? "completed" : "usage.invalid",
  );
  expect(server.requests.map(({ body }) => JSON.stringify(body).includes(tool))).toEqual(isSearching ? [true] : []);
});
