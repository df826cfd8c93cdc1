import { describe, expect, test } from "vitest";
import { modelInfo } from "../catalog/catalog.ts";
import { resolveProvider, type Provider, type ProviderConfig } from "../providers/providers.ts";
import type { ModelInput, ModelRequest } from "../requests/stream.ts";
import { sampleRequest, TOOLS } from "../testing/testing-requests.ts";
import { anthropic } from "./anthropic.ts";
import { gemini } from "./gemini.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiResponses } from "./openai-responses.ts";
import type { Wire, WireCall } from "./wire.ts";

const IMAGE = { type: "image", mediaType: "image/png", base64: "AAAA" } as const;
const SCHEMA = {
  type: "object",
  properties: { ok: { type: "boolean" } },
  required: ["ok"],
  additionalProperties: false,
};

function provider(id: string, overrides: Partial<ProviderConfig> = {}): Provider {
  return resolveProvider([{ id, key: "k", ...overrides }], id, {});
}

function encode(wire: Wire, by: Provider, request: ModelRequest): WireCall {
  return wire.encode({ provider: by, request, info: modelInfo(by, request.model) });
}

/** One turn with everything in it; `opaque` as the provider under test made it. */
function conversation(opaque: { reasoning?: unknown; text?: unknown; call?: unknown }, tag: string): ModelInput[] {
  const own = (data: unknown): { opaque?: { wire: string; data: unknown } } =>
    data === undefined ? {} : { opaque: { wire: tag, data } };
  return [
    { kind: "user", parts: [{ type: "text", text: "fix it" }, IMAGE] },
    {
      kind: "assistant",
      parts: [
        { kind: "reasoning", summary: ["hm"], ...own(opaque.reasoning) },
        { kind: "text", text: "Looking.", ...own(opaque.text) },
        {
          kind: "toolCall",
          callId: "c1",
          name: "exec_command",
          input: '{"cmd":"ls"}',
          shape: "json",
          ...own(opaque.call),
        },
        { kind: "toolCall", callId: "c2", name: "apply_patch", input: "*** Begin", shape: "freeform" },
        { kind: "toolCall", callId: "c3", name: "exec_command", input: "{broken", shape: "json" },
      ],
    },
    {
      kind: "toolResult",
      callId: "c1",
      name: "exec_command",
      shape: "json",
      isError: false,
      parts: [{ type: "text", text: "a.ts" }, IMAGE],
    },
    {
      kind: "toolResult",
      callId: "c2",
      name: "apply_patch",
      shape: "freeform",
      isError: true,
      parts: [{ type: "text", text: "no such file" }],
    },
    {
      kind: "toolResult",
      callId: "c3",
      name: "exec_command",
      shape: "json",
      isError: true,
      parts: [{ type: "text", text: "not JSON" }],
    },
    { kind: "user", parts: [{ type: "text", text: "go on" }] },
  ];
}

const JSON_TOOL = TOOLS[0]?.parameters;
const FREEFORM = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
};
const WRAPPED = JSON.stringify({ invalid_json: "{broken" });
const BOUND = { block_binding: { prefix_mismatch_behavior: "drop_block" } };
const URL = "data:image/png;base64,AAAA";

describe("OpenAI Responses", () => {
  test("a conversation is encoded with its items as they came", () => {
    const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "sealed" };
    const text = {
      type: "message",
      id: "msg_1",
      role: "assistant",
      content: [{ type: "output_text", text: "Looking." }],
    };
    const call = { type: "function_call", id: "fc_1", call_id: "c0", name: "exec_command", arguments: '{"cmd":"ls"}' };
    const input = conversation({ reasoning, text, call }, "openai-responses:openai");
    const request = sampleRequest({
      model: "gpt-6-sol",
      input,
      effort: "high",
      outputSchema: SCHEMA,
      maxOutputTokens: 9,
    });
    expect(encode(openaiResponses, provider("openai"), request)).toEqual({
      path: "/responses",
      body: {
        model: "gpt-6-sol",
        instructions: "Be brief.",
        input: [
          {
            type: "message",
            role: "user",
            content: [
              { type: "input_text", text: "fix it" },
              { type: "input_image", image_url: URL },
            ],
          },
          reasoning,
          text,
          { ...call, call_id: "c1" },
          { type: "custom_tool_call", call_id: "c2", name: "apply_patch", input: "*** Begin" },
          {
            type: "function_call",
            call_id: "c3",
            name: "exec_command",
            arguments: WRAPPED,
          },
          {
            type: "function_call_output",
            call_id: "c1",
            output: [
              { type: "input_text", text: "a.ts" },
              { type: "input_image", image_url: URL },
            ],
          },
          { type: "custom_tool_call_output", call_id: "c2", output: "no such file" },
          { type: "function_call_output", call_id: "c3", output: "not JSON" },
          { type: "message", role: "user", content: [{ type: "input_text", text: "go on" }] },
        ],
        tools: [
          {
            type: "function",
            name: "exec_command",
            description: "Runs a shell command.",
            strict: false,
            parameters: JSON_TOOL,
          },
          { type: "custom", name: "apply_patch", description: "Edits files." },
        ],
        tool_choice: "auto",
        parallel_tool_calls: true,
        reasoning: { effort: "high", summary: "auto" },
        text: { format: { type: "json_schema", name: "codex_output_schema", strict: true, schema: SCHEMA } },
        max_output_tokens: 9,
        store: false,
        stream: true,
        include: ["reasoning.encrypted_content"],
        prompt_cache_key: "thread-1",
      },
    });
  });

  test("reasoning of another provider, or without its sealed content, is left out", () => {
    const foreign: ModelInput = {
      kind: "assistant",
      parts: [
        { kind: "reasoning", summary: ["a"], opaque: { wire: "anthropic:anthropic", data: { type: "thinking" } } },
        {
          kind: "reasoning",
          summary: ["b"],
          opaque: { wire: "openai-responses:openai", data: { type: "reasoning", id: "rs_2" } },
        },
        { kind: "text", text: "hi", opaque: { wire: "openai-responses:other", data: { secret: 1 } } },
      ],
    };
    const { body } = encode(openaiResponses, provider("openai"), sampleRequest({ input: [foreign] }));
    expect(body).toMatchObject({
      input: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "hi" }] }],
    });
  });
});

describe("Chat Completions", () => {
  test("a conversation is encoded for any server of this kind", () => {
    const input = conversation({ reasoning: { reasoning_content: "hm" } }, "openai-chat:openrouter");
    const request = sampleRequest({ input, effort: "low", outputSchema: SCHEMA, maxOutputTokens: 9 });
    expect(encode(openaiChat, provider("openrouter"), request)).toEqual({
      path: "/chat/completions",
      body: {
        model: "some-model",
        messages: [
          { role: "system", content: "Be brief." },
          {
            role: "user",
            content: [
              { type: "text", text: "fix it" },
              { type: "image_url", image_url: { url: URL } },
            ],
          },
          {
            role: "assistant",
            content: "Looking.",
            reasoning_content: "hm",
            tool_calls: [
              { id: "c1", type: "function", function: { name: "exec_command", arguments: '{"cmd":"ls"}' } },
              { id: "c2", type: "function", function: { name: "apply_patch", arguments: '{"input":"*** Begin"}' } },
              { id: "c3", type: "function", function: { name: "exec_command", arguments: WRAPPED } },
            ],
          },
          { role: "tool", tool_call_id: "c1", content: "a.ts" },
          { role: "tool", tool_call_id: "c2", content: "no such file" },
          { role: "tool", tool_call_id: "c3", content: "not JSON" },
          { role: "user", content: [{ type: "image_url", image_url: { url: URL } }] },
          { role: "user", content: "go on" },
        ],
        tools: [
          {
            type: "function",
            function: { name: "exec_command", description: "Runs a shell command.", parameters: JSON_TOOL },
          },
          { type: "function", function: { name: "apply_patch", description: "Edits files.", parameters: FREEFORM } },
        ],
        tool_choice: "auto",
        reasoning_effort: "low",
        response_format: {
          type: "json_schema",
          json_schema: { name: "codex_output_schema", strict: true, schema: SCHEMA },
        },
        max_tokens: 9,
        stream: true,
        stream_options: { include_usage: true },
      },
    });
  });

  test("fields that only OpenAI knows go only there", () => {
    const { body } = encode(
      openaiChat,
      provider("openai", { wire: "openai-chat" }),
      sampleRequest({ maxOutputTokens: 9 }),
    );
    expect(body).toMatchObject({ max_completion_tokens: 9, prompt_cache_key: "thread-1", store: false });
  });
});

describe("Anthropic Messages", () => {
  test("a conversation is encoded with thinking as it came and three cache breakpoints", () => {
    const thinking = { type: "thinking", thinking: "hm", signature: "signed" };
    const input = conversation({ reasoning: thinking }, "anthropic:anthropic");
    const request = sampleRequest({ model: "claude-sonnet-5-5", input, effort: "minimal", outputSchema: SCHEMA });
    const cached = { cache_control: { type: "ephemeral" } };
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
    expect(encode(anthropic, provider("anthropic"), request)).toEqual({
      path: "/messages",
      headers: { "anthropic-version": "2023-06-01", "anthropic-beta": "thinking-binding-controls-2026-08-01" },
      body: {
        model: "claude-sonnet-5-5",
        max_tokens: 128_000,
        system: [{ type: "text", text: "Be brief.", ...cached }],
        messages: [
          { role: "user", content: [{ type: "text", text: "fix it" }, image] },
          {
            role: "assistant",
            content: [
              thinking,
              { type: "text", text: "Looking." },
              { type: "tool_use", id: "c1", name: "exec_command", input: { cmd: "ls" } },
              { type: "tool_use", id: "c2", name: "apply_patch", input: { input: "*** Begin" } },
              { type: "tool_use", id: "c3", name: "exec_command", input: { invalid_json: "{broken" } },
            ],
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "c1", content: [{ type: "text", text: "a.ts" }, image] },
              {
                type: "tool_result",
                tool_use_id: "c2",
                content: [{ type: "text", text: "no such file" }],
                is_error: true,
              },
              { type: "tool_result", tool_use_id: "c3", content: [{ type: "text", text: "not JSON" }], is_error: true },
              { type: "text", text: "go on", ...cached },
            ],
          },
        ],
        tools: [
          { name: "exec_command", description: "Runs a shell command.", input_schema: JSON_TOOL },
          { name: "apply_patch", description: "Edits files.", input_schema: FREEFORM, ...cached },
        ],
        thinking: { type: "adaptive", display: "summarized", ...BOUND },
        output_config: { effort: "low", format: { type: "json_schema", schema: SCHEMA } },
        stream: true,
      },
    });
  });

  test.each([
    ["claude-haiku-4-5-20251001", "high", { thinking: { type: "enabled", budget_tokens: 24_576 }, max_tokens: 64_000 }],
    ["claude-3-7-sonnet-latest", "low", { thinking: { type: "enabled", budget_tokens: 4096 }, max_tokens: 32_000 }],
    [
      "claude-opus-5-5",
      "xhigh",
      { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "xhigh" } },
    ],
  ])("%s gets the form of thinking that it knows", (model, effort, expected) => {
    expect(encode(anthropic, provider("anthropic"), sampleRequest({ model, effort })).body).toMatchObject(expected);
  });

  test("a model of another maker gets no field that only Claude knows", () => {
    const { body } = encode(
      anthropic,
      provider("other", { wire: "anthropic", baseUrl: "http://x/v1" }),
      sampleRequest({ model: "kimi-k3", effort: "high" }),
    );
    expect(Object.keys(Object(body))).toEqual(["model", "max_tokens", "system", "messages", "tools", "stream"]);
  });
});

describe("Gemini", () => {
  test("a conversation is encoded with signed parts as they came", () => {
    const call = [
      { functionCall: { id: "c0", name: "exec_command", args: { cmd: "ls" } }, thoughtSignature: "signed" },
    ];
    const text = [{ text: "Looking." }, { text: "", thoughtSignature: "signed-text" }];
    const input = conversation({ text, call }, "gemini:gemini");
    const request = sampleRequest({
      model: "gemini-3.8-flash",
      input,
      effort: "max",
      outputSchema: SCHEMA,
      maxOutputTokens: 9,
    });
    const skip = { thoughtSignature: "skip_thought_signature_validator" };
    const image = { inlineData: { mimeType: "image/png", data: "AAAA" } };
    expect(encode(gemini, provider("gemini"), request)).toEqual({
      path: "/models/gemini-3.8-flash:streamGenerateContent",
      query: { alt: "sse" },
      body: {
        systemInstruction: { parts: [{ text: "Be brief." }] },
        contents: [
          { role: "user", parts: [{ text: "fix it" }, image] },
          {
            role: "model",
            parts: [
              { text: "Looking." },
              { text: "", thoughtSignature: "signed-text" },
              { functionCall: { id: "c1", name: "exec_command", args: { cmd: "ls" } }, thoughtSignature: "signed" },
              { functionCall: { name: "apply_patch", args: { input: "*** Begin" } }, ...skip },
              { functionCall: { name: "exec_command", args: { invalid_json: "{broken" } }, ...skip },
            ],
          },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "c1", name: "exec_command", response: { output: "a.ts" } } },
              image,
              { functionResponse: { name: "apply_patch", response: { error: "no such file" } } },
              { functionResponse: { name: "exec_command", response: { error: "not JSON" } } },
              { text: "go on" },
            ],
          },
        ],
        tools: [
          {
            functionDeclarations: [
              { name: "exec_command", description: "Runs a shell command.", parametersJsonSchema: JSON_TOOL },
              { name: "apply_patch", description: "Edits files.", parametersJsonSchema: FREEFORM },
            ],
          },
        ],
        generationConfig: {
          maxOutputTokens: 9,
          thinkingConfig: { includeThoughts: true, thinkingLevel: "high" },
          responseMimeType: "application/json",
          responseJsonSchema: SCHEMA,
        },
      },
    });
  });

  test("a model that refuses a schema beside tools is asked in words", () => {
    const { body } = encode(
      gemini,
      provider("gemini"),
      sampleRequest({ model: "gemini-2.5-pro", effort: "low", outputSchema: SCHEMA }),
    );
    expect(body).toMatchObject({
      systemInstruction: { parts: [{}, { text: expect.stringContaining(JSON.stringify(SCHEMA)) }] },
      generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 } },
    });
    expect(JSON.stringify(body)).not.toContain("responseMimeType");
  });
});
