/** Searches that providers make themselves: offered, told, and sent back as they came. */
import type { ModelOutputPart } from "@heddle/protocol";
import { expect, test } from "vitest";
import { startModelServer, type HttpWire } from "../testing.ts";
import { collect, completedOf, decode, HTTP_WIRES, sampleRequest, testProvider } from "../testing-requests.ts";
import { searchesWeb } from "../web-search.ts";

async function sent(wire: HttpWire, more: Parameters<typeof sampleRequest>[0]): Promise<string> {
  await using server = await startModelServer({ script: [{ text: "ok" }] });
  await collect(testProvider(server, wire), sampleRequest(more));
  return JSON.stringify(server.requests[0]?.body);
}

const SEARCH_TOOLS: Readonly<Record<HttpWire, string | undefined>> = {
  "openai-responses": '{"type":"web_search","external_web_access":true}',
  "openai-chat": undefined,
  anthropic: '{"type":"web_search_20250305","name":"web_search","max_uses":8}',
  gemini: '{"googleSearch":{}}',
};

test.each(HTTP_WIRES)("%s: the tool is offered beside the others when it is asked for, and only then", async (wire) => {
  const tool = SEARCH_TOOLS[wire];
  expect(searchesWeb({ wire }, "some-model")).toBe(tool !== undefined);
  if (tool === undefined) return;
  const asked = await sent(wire, { webSearch: "live" });
  expect(asked).toContain(tool);
  expect(asked).toContain("exec_command");
  expect(await sent(wire, {})).not.toContain(tool);
});

test("a stored copy of the web is no access to the web", async () => {
  expect(await sent("openai-responses", { webSearch: "cached" })).toContain(
    '{"type":"web_search","external_web_access":false}',
  );
});

test("Gemini before its third generation cannot search beside tools", () => {
  expect(["gemini-2.5-pro", "gemini-3-pro"].map((model) => searchesWeb({ wire: "gemini" }, model))).toEqual([
    false,
    true,
  ]);
});

const searchesIn = (output: readonly ModelOutputPart[]): unknown[] =>
  output.flatMap((part) => (part.kind === "reasoning" && part.search !== undefined ? [part.search.query] : []));

const sendBack = (wire: HttpWire, parts: readonly ModelOutputPart[]): Promise<string> =>
  sent(wire, { input: [{ kind: "assistant", parts }] });

test("OpenAI Responses: a search and the message with its sources go back as they came", async () => {
  const search = {
    id: "ws_1",
    type: "web_search_call",
    status: "completed",
    action: { type: "search", query: "rain" },
  };
  const annotations = [{ type: "url_citation", url: "https://example.com", start_index: 0, end_index: 2 }];
  const said = {
    id: "m",
    type: "message",
    role: "assistant",
    content: [{ type: "output_text", text: "It rains", annotations }],
  };
  const { output } = completedOf(
    await decode("openai-responses", { type: "response.completed", response: { output: [search, said] } }),
  );
  expect(searchesIn(output)).toEqual(["rain"]);
  const back = await sendBack("openai-responses", output);
  for (const item of [search, said]) expect(back).toContain(JSON.stringify(item));
});

test("Anthropic Messages: the call and its encrypted results go back in their order", async () => {
  const result = {
    type: "web_search_tool_result",
    tool_use_id: "srv_1",
    content: [{ type: "web_search_result", url: "https://example.com", encrypted_content: "sealed" }],
  };
  const start = (index: number, content_block: object): unknown => ({
    type: "content_block_start",
    index,
    content_block,
  });
  const { output } = completedOf(
    await decode(
      "anthropic",
      start(0, { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} }),
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"query":"rain"}' } },
      { type: "content_block_stop", index: 0 },
      start(1, result),
      { type: "content_block_stop", index: 1 },
      start(2, { type: "text", text: "It rains" }),
      { type: "content_block_stop", index: 2 },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" },
    ),
  );
  expect(searchesIn(output)).toEqual(["rain"]);
  const call = { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "rain" } };
  expect(await sendBack("anthropic", output)).toContain(
    `[${JSON.stringify(call)},${JSON.stringify(result)},{"type":"text","text":"It rains"}]`,
  );
});

test("Gemini: what was searched is told once, and nothing of it goes back", async () => {
  const chunk = (more: object): unknown => ({
    candidates: [
      { content: { parts: [{ text: "It rains" }] }, groundingMetadata: { webSearchQueries: ["rain"] }, ...more },
    ],
  });
  const { output } = completedOf(await decode("gemini", chunk({}), chunk({ finishReason: "STOP" })));
  expect(searchesIn(output)).toEqual(["rain"]);
  expect(await sendBack("gemini", output)).not.toContain("webSearchQueries");
});
