/** Searches that providers make themselves: offered, told, and sent back as they came. */
import type { ModelOutputPart } from "@heddle/protocol";
import { expect, test } from "vitest";
import { startModelServer, type HttpWire } from "../testing/testing.ts";
import { collect, completedOf, decode, HTTP_WIRES, sampleRequest, testProvider } from "../testing/testing-requests.ts";
import { searchProblem } from "./web-search.ts";

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
  expect(searchProblem({ wire }, "some-model") === undefined).toBe(tool !== undefined);
  if (tool === undefined) return;
  const asked = await sent(wire, { webSearch: "live" });
  expect(asked).toContain(tool);
  expect(asked).toContain("exec_command");
  expect(await sent(wire, {})).not.toContain(tool);
});

test.each([
  ["cached", '{"type":"web_search","external_web_access":false}'],
  ["indexed", '{"type":"web_search","external_web_access":true,"indexed_web_access":true}'],
] as const)("OpenAI Responses: %s", async (webSearch, tool) => {
  expect(await sent("openai-responses", { webSearch })).toContain(tool);
});

const OPTIONS = {
  contextSize: "low",
  allowedDomains: ["example.com"],
  location: { country: "DE", city: "Berlin" },
} as const;

test.each([
  [
    "openai-responses",
    '"filters":{"allowed_domains":["example.com"]},"user_location":{"type":"approximate","country":"DE","city":"Berlin"},"search_context_size":"low"}',
  ],
  [
    "anthropic",
    '"allowed_domains":["example.com"],"user_location":{"type":"approximate","country":"DE","city":"Berlin"}}',
  ],
] as const)("%s is told where to search and where the user is", async (wire, told) => {
  const searchOptions = { ...OPTIONS, allowedDomains: [...OPTIONS.allowedDomains] };
  expect(await sent(wire, { webSearch: "live", searchOptions })).toContain(told);
});

test.each<[string, Parameters<typeof searchProblem>, string | undefined]>([
  ["Gemini 3", [{ wire: "gemini" }, "gemini-3-pro"], undefined],
  ["Gemini 2 beside tools", [{ wire: "gemini" }, "gemini-2.5-pro"], "does not search the web for gemini-2.5-pro"],
  [
    "Gemini 3, held to domains",
    [{ wire: "gemini" }, "gemini-3-pro", { allowedDomains: ["example.com"] }],
    "cannot be limited to tools.web_search.allowed_domains",
  ],
  ["Gemini on Vertex AI", [{ wire: "gemini", auth: "vertex" }, "gemini-3-pro"], undefined],
  ["Claude of Anthropic", [{ wire: "anthropic" }, "claude-x"], undefined],
  ["Claude on Bedrock", [{ wire: "anthropic", auth: "bedrock" }, "claude-x"], "does not search the web for claude-x"],
  ["Claude on Vertex AI", [{ wire: "anthropic", auth: "vertex" }, "claude-x"], "does not search the web for claude-x"],
])("%s", (_name, question, problem) => {
  expect(searchProblem(...question)).toBe(problem);
});

const searchesIn = (output: readonly ModelOutputPart[]): unknown[] =>
  output.flatMap((part) => (part.kind === "reasoning" && part.search !== undefined ? [part.search.query] : []));

const sourcesIn = (output: readonly ModelOutputPart[]): unknown[] =>
  output.flatMap((part) => (part.kind === "text" ? [part.sources] : []));

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
  expect(sourcesIn(output)).toEqual([[{ url: "https://example.com" }]]);
  const back = await sendBack("openai-responses", output);
  for (const item of [search, said]) expect(back).toContain(JSON.stringify(item));
});

const CITATION = {
  type: "web_search_result_location",
  url: "https://example.com",
  title: "Weather",
  encrypted_index: "sealed",
  cited_text: "rain",
};

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
      start(3, { type: "text", text: "", citations: [] }),
      { type: "content_block_delta", index: 3, delta: { type: "text_delta", text: ", they say" } },
      { type: "content_block_delta", index: 3, delta: { type: "citations_delta", citation: CITATION } },
      { type: "content_block_stop", index: 3 },
      start(4, { type: "text", text: "." }),
      { type: "content_block_stop", index: 4 },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "message_stop" },
    ),
  );
  expect(searchesIn(output)).toEqual(["rain"]);
  const call = { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "rain" } };
  const texts = [
    { type: "text", text: "It rains", citations: [] },
    { type: "text", text: ", they say", citations: [CITATION] },
    { type: "text", text: ".", citations: [] },
  ];
  // A cited passage is a block of its own, and still one message with the text around it.
  expect(output.at(-1)).toMatchObject({
    kind: "text",
    text: "It rains, they say.",
    sources: [{ url: "https://example.com", title: "Weather" }],
  });
  expect(output).toHaveLength(3);
  const back = [call, result, ...texts].map((block) => JSON.stringify(block)).join(",");
  expect(await sendBack("anthropic", output)).toContain(`[${back}]`);
});

test("Gemini: what was searched is told once, with the sources of the text, and nothing of it goes back", async () => {
  const groundingMetadata = {
    webSearchQueries: ["rain"],
    groundingChunks: [{ web: { uri: "https://example.com", title: "Weather" } }, { web: {} }],
  };
  const chunk = (text: string, more: object): unknown => ({
    candidates: [{ content: { parts: [{ text }] }, groundingMetadata, ...more }],
  });
  const { output } = completedOf(await decode("gemini", chunk("It ", {}), chunk("rains", { finishReason: "STOP" })));
  expect(searchesIn(output)).toEqual(["rain"]);
  expect(output[0]).toEqual({
    kind: "text",
    text: "It rains",
    sources: [{ url: "https://example.com", title: "Weather" }],
  });
  expect(await sendBack("gemini", output)).not.toContain("webSearchQueries");
});

const HUGE = "x".repeat(5_000);
const HOSTILE = ["\u0000\u001b[2J\ud800<script>", HUGE, "", 7, null, { a: 1 }, [["rain"]]];
const PAGES = Array.from({ length: 10_000 }, (_, at) => ({
  url: `https://example.com/${at}`,
  title: at === 0 ? HUGE : "t",
}));
const BAD_PAGES = [null, 3, "https://example.com", {}, { url: 1 }, { url: HUGE }, { url: "https://a", title: {} }];

/** One answer with this as everything that can be searched for, and these pages as what it rests on. */
const HOSTILE_EVENTS: Readonly<
  Record<"openai-responses" | "anthropic" | "gemini", (said: unknown, pages: readonly unknown[]) => unknown[]>
> = {
  "openai-responses": (said, annotations) => {
    const many = Array.from({ length: 1_000 }, () => said);
    const actions = [
      { type: "search", query: said, queries: many },
      { type: "open_page", url: said },
      { type: "find_in_page", url: said, pattern: said },
      { type: said },
      said,
    ];
    const searches = actions.map((action, at) => ({
      id: at === 0 ? said : `ws_${at}`,
      type: "web_search_call",
      action,
    }));
    const message = { id: "m", type: "message", content: [{ type: "output_text", text: "done", annotations }] };
    return [{ type: "response.completed", response: { output: [...searches, message] } }];
  },
  anthropic: (said, citations) => [
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "server_tool_use", id: said, name: "web_search", input: { query: said } },
    },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "web_search_tool_result", content: said } },
    { type: "content_block_stop", index: 1 },
    { type: "content_block_start", index: 2, content_block: { type: "text", text: "done", citations: said } },
    ...citations.map((citation) => ({
      type: "content_block_delta",
      index: 2,
      delta: { type: "citations_delta", citation },
    })),
    { type: "content_block_stop", index: 2 },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    { type: "message_stop" },
  ],
  gemini: (said, pages) => {
    const webSearchQueries = [said, ...Array.from({ length: 10_000 }, (_, at) => `query ${at}`)];
    const groundingMetadata = { webSearchQueries, groundingChunks: [said, ...pages.map((web) => ({ web }))] };
    const candidate = { content: { parts: [{ text: "done" }] }, groundingMetadata };
    return [{ candidates: [candidate] }, { candidates: [{ ...candidate, finishReason: "STOP" }] }];
  },
};

test.each(["openai-responses", "anthropic", "gemini"] as const)(
  "%s: whatever a search carries is bounded, and the answer stands",
  async (wire) => {
    for (const said of HOSTILE) {
      const { output } = completedOf(await decode(wire, ...HOSTILE_EVENTS[wire](said, [...BAD_PAGES, ...PAGES])));
      const shown = output.map((part) => ({ ...part, opaque: undefined }));
      expect(JSON.stringify(shown).length).toBeLessThan(1_000_000);
      expect(output.length).toBeLessThanOrEqual(102);
      const text = output.find((part) => part.kind === "text");
      expect(text?.text).toMatch(/^(done)+$/);
      expect(text?.sources).toHaveLength(100);
      expect(text?.sources?.[0]).toEqual({ url: "https://a" });
      await sendBack(wire, output);
    }
  },
);
