import { describe, expect, test } from "vitest";
import { answeringNotes } from "./answering.ts";
import { modelInfo } from "../catalog/catalog.ts";
import { resolveProvider, type ProviderConfig } from "../providers/providers.ts";
import { sampleRequest } from "../testing/testing-requests.ts";
import type { ModelRequest } from "../requests/stream.ts";
import { anthropic } from "./anthropic.ts";
import { gemini } from "./gemini.ts";
import { openaiChat } from "./openai-chat.ts";
import { openaiResponses } from "./openai-responses.ts";

const WIRES = { "openai-responses": openaiResponses, "openai-chat": openaiChat, anthropic, gemini };

const INSTRUCTED: Partial<ModelRequest> = {
  instructions: "base",
  developerInstructions: "developer",
  input: [
    { kind: "user", role: "developer", parts: [{ type: "text", text: "vouched for" }] },
    { kind: "user", parts: [{ type: "text", text: "hello" }] },
  ],
  tools: [],
};

function asked(wire: keyof typeof WIRES, request: Partial<ModelRequest>, more: Partial<ProviderConfig> = {}) {
  const config = { id: "x", name: "X", wire, baseUrl: "http://127.0.0.1:1", key: "k", ...more };
  const provider = resolveProvider([config], "x", {});
  const whole = sampleRequest(request);
  const info = modelInfo(provider, whole.model);
  const body = WIRES[wire].encode({ provider, request: whole, info }).body as Record<string, unknown>;
  return { body, notes: answeringNotes(whole, provider, info) };
}

const CACHE = { cache_control: { type: "ephemeral" } };
const text = (words: string): object => ({ type: "text", text: words });

describe("instructions have a place of their own on every wire", () => {
  test("OpenAI Responses: `instructions`, then messages of a developer", () => {
    const message = (role: string, words: string): object => ({
      type: "message",
      role,
      content: [{ type: "input_text", text: words }],
    });
    const { body } = asked("openai-responses", INSTRUCTED);
    expect(body).toMatchObject({
      instructions: "base",
      input: [message("developer", "developer"), message("developer", "vouched for"), message("user", "hello")],
    });
    expect(asked("openai-responses", { ...INSTRUCTED, instructions: "" }).body).not.toHaveProperty("instructions");
  });

  test("chat completions: one system message; what is vouched for is text of the user", () => {
    const user = [
      { role: "user", content: "vouched for" },
      { role: "user", content: "hello" },
    ];
    expect(asked("openai-chat", INSTRUCTED).body).toMatchObject({
      messages: [{ role: "system", content: "base\n\ndeveloper" }, ...user],
    });
    const none = { ...INSTRUCTED, instructions: "", developerInstructions: "" };
    expect(asked("openai-chat", none).body).toMatchObject({ messages: user });
  });

  test("Anthropic: blocks of `system`, the last one cached", () => {
    expect(asked("anthropic", INSTRUCTED).body).toMatchObject({
      system: [text("base"), { ...text("developer"), ...CACHE }],
      messages: [{ role: "user", content: [text("vouched for"), { ...text("hello"), ...CACHE }] }],
    });
    const none = { ...INSTRUCTED, instructions: "", developerInstructions: "" };
    expect(asked("anthropic", none).body).not.toHaveProperty("system");
  });

  test("Gemini: parts of `systemInstruction`", () => {
    expect(asked("gemini", INSTRUCTED).body).toMatchObject({
      systemInstruction: { parts: [{ text: "base" }, { text: "developer" }] },
      contents: [{ role: "user", parts: [{ text: "vouched for" }, { text: "hello" }] }],
    });
    const none = { ...INSTRUCTED, instructions: "", developerInstructions: "" };
    expect(asked("gemini", none).body).not.toHaveProperty("systemInstruction");
  });
});

const WISHES = { ...INSTRUCTED, verbosity: "low", summary: "detailed", serviceTier: "priority" } as const;
const SHORT = "Keep your answers short.";

describe("how to answer, in the form of each wire", () => {
  test("OpenAI Responses has a field for each, where the model has it", () => {
    const { body, notes } = asked("openai-responses", { ...WISHES, model: "gpt-5.5" });
    expect(body).toMatchObject({
      text: { verbosity: "low" },
      reasoning: { summary: "detailed" },
      service_tier: "priority",
    });
    expect(notes).toEqual([]);
    const older = asked("openai-responses", { ...WISHES, model: "gpt-4.1" });
    expect(older.body).not.toHaveProperty("text");
    expect(older.body).not.toHaveProperty("reasoning");
    expect(JSON.stringify(older.body["input"])).toContain(SHORT);
  });

  test("without a wish only an effort asks for reasoning, and no summary is asked for where none is wanted", () => {
    const model = "gpt-5.5";
    expect(asked("openai-responses", { model }).body).not.toHaveProperty("reasoning");
    expect(asked("openai-responses", { model, effort: "low" }).body).toMatchObject({
      reasoning: { effort: "low", summary: "auto" },
    });
    expect(asked("openai-responses", { model, effort: "low", summary: "none" }).body["reasoning"]).toEqual({
      effort: "low",
    });
  });

  test("chat completions has two of them for models of OpenAI; for others text and notes", () => {
    const { body, notes } = asked("openai-chat", { ...WISHES, model: "gpt-5.5" });
    expect(body).toMatchObject({ verbosity: "low", service_tier: "priority" });
    expect(notes).toEqual(["X cannot be asked for detailed summaries of reasoning over this wire"]);
    const other = asked("openai-chat", { ...WISHES, model: "some-model" });
    expect(other.body).not.toHaveProperty("verbosity");
    expect(other.body).not.toHaveProperty("service_tier");
    expect(other.body).toMatchObject({ messages: [{ content: `base\n\ndeveloper\n\n${SHORT}` }, {}, {}] });
    expect(other.notes[0]).toBe("X has no service tier priority for some-model; none is asked for");
  });

  test("Anthropic has a tier and shows thinking or not; Gemini shows it or not", () => {
    const claude = asked("anthropic", { ...WISHES, model: "claude-sonnet-5-5" }, { vendor: "anthropic" });
    expect(claude.body).toMatchObject({ service_tier: "auto", thinking: { display: "summarized" } });
    expect(JSON.stringify(claude.body["system"])).toContain(SHORT);
    expect(claude.notes).toEqual([]);
    const quiet = { ...WISHES, summary: "none", serviceTier: "flex" } as const;
    const silent = asked("anthropic", { ...quiet, model: "claude-sonnet-5-5" }, { vendor: "anthropic" });
    expect(silent.body).toMatchObject({ thinking: { display: "omitted" } });
    expect(silent.body).not.toHaveProperty("service_tier");
    expect(silent.notes).toEqual(["X has no service tier flex for claude-sonnet-5-5; none is asked for"]);
    const google = asked("gemini", { ...quiet, model: "gemini-3.8-flash" });
    expect(google.body).toMatchObject({ generationConfig: { thinkingConfig: { includeThoughts: false } } });
    expect(JSON.stringify(google.body["systemInstruction"])).toContain(SHORT);
    expect(google.notes).toEqual(["X has no service tier flex for gemini-3.8-flash; none is asked for"]);
  });

  test("a tier that nobody has is not sent; `default` is none", () => {
    for (const serviceTier of ["nonsense", "default"])
      expect(asked("openai-responses", { model: "gpt-5.5", serviceTier }).body).not.toHaveProperty("service_tier");
    expect(asked("openai-responses", { model: "gpt-5.5", serviceTier: "default" }).notes).toEqual([]);
    expect(asked("openai-responses", { model: "gpt-5.5", serviceTier: "nonsense" }).notes).toHaveLength(1);
  });
});
