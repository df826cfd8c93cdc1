/**
 * OpenAI Responses. Nothing is stored at the provider: each request carries the whole conversation, and every item the
 * model made goes back as it came, its encrypted reasoning included.
 */
import { defined, type InputPart, type ModelOutputPart, type ModelToolCall } from "@heddle/protocol";
import { tierOf, verbosityField } from "./answering.ts";
import type { ModelInfo } from "../catalog/catalog.ts";
import type { Provider } from "../providers/providers.ts";
import type { ModelInput, ModelRequest, ToolSpec } from "../requests/stream.ts";
import { argumentsText } from "./calls.ts";
import { dataUrl, namedSchema, outputLimit, textOrList } from "./openai.ts";
import { decodeResponses } from "./responses-answer.ts";
import { record, text, type Fields } from "./untrusted.ts";
import { instructionTexts, kept, offeredTool, type Wire, type WireCall, type WireContext } from "./wire.ts";

export const openaiResponses: Wire = { encode, decode: decodeResponses };

function encode(context: WireContext): WireCall {
  const { provider, request, info } = context;
  const { model, instructions } = request;
  return {
    path: "/responses",
    body: {
      model,
      ...(instructions === "" ? {} : { instructions }),
      input: [...encodeDeveloper(context), ...request.input.flatMap((entry) => encodeEntry(entry, provider))],
      ...encodeTools(request, info),
      ...encodeReasoning(request, info),
      ...encodeText(request, info),
      ...defined({ service_tier: tierOf(request, provider, info) }),
      ...outputLimit(context),
      store: false,
      stream: true,
      // Models that do not reason refuse to be asked for it.
      ...(info.isReasoning === false ? {} : { include: ["reasoning.encrypted_content"] }),
      prompt_cache_key: request.cacheKey,
    },
  };
}

function encodeDeveloper({ request, info }: WireContext): readonly unknown[] {
  const texts = instructionTexts({ request: { ...request, instructions: "" }, info });
  return texts.map((text) => ({ type: "message", role: "developer", content: [{ type: "input_text", text }] }));
}

/** A model that does not reason refuses to be asked for it; one that does is asked for summaries unless none are wanted. */
function encodeReasoning({ effort, summary }: ModelRequest, { isReasoning }: ModelInfo): Record<string, unknown> {
  if (isReasoning === false || (effort === undefined && (summary ?? "none") === "none")) return {};
  return { reasoning: defined({ effort, summary: summary === "none" ? undefined : (summary ?? "auto") }) };
}

function encodeText(request: ModelRequest, info: ModelInfo): Record<string, unknown> {
  const { outputSchema } = request;
  const text = defined({
    verbosity: verbosityField(request, info),
    format: outputSchema === undefined ? undefined : { type: "json_schema", ...namedSchema(outputSchema) },
  });
  return Object.keys(text).length === 0 ? {} : { text };
}

function encodeTools(request: ModelRequest, info: ModelInfo): Record<string, unknown> {
  const { tools } = request;
  const search = encodeSearch(request);
  if (tools.length + search.length === 0) return {};
  return {
    tools: [...tools.map((tool) => encodeTool(tool, info)), ...search],
    tool_choice: "auto",
    parallel_tool_calls: true,
  };
}

function encodeSearch({ webSearch, searchOptions = {} }: ModelRequest): readonly unknown[] {
  if (webSearch === undefined) return [];
  const { contextSize, allowedDomains, location } = searchOptions;
  return [
    {
      type: "web_search",
      external_web_access: webSearch !== "cached",
      ...(webSearch === "indexed" ? { indexed_web_access: true } : {}),
      ...(allowedDomains === undefined ? {} : { filters: { allowed_domains: allowedDomains } }),
      ...(location === undefined ? {} : { user_location: { type: "approximate", ...location } }),
      ...defined({ search_context_size: contextSize }),
    },
  ];
}

function encodeTool(tool: ToolSpec, info: ModelInfo): unknown {
  if (tool.shape === "freeform") return { type: "custom", name: tool.name, description: tool.description };
  const { name, description, parameters } = offeredTool(tool, info);
  return { type: "function", name, description, strict: false, parameters };
}

function encodeEntry(entry: ModelInput, provider: Provider): readonly unknown[] {
  switch (entry.kind) {
    case "user":
      return [{ type: "message", role: entry.role ?? "user", content: entry.parts.map(encodePart) }];
    case "assistant":
      return entry.parts.flatMap((part) => encodeOutput(part, record(kept(provider, part.opaque))));
    case "toolResult":
      return [
        {
          type: entry.shape === "freeform" ? "custom_tool_call_output" : "function_call_output",
          call_id: entry.callId,
          output: textOrList(entry.parts, encodePart),
        },
      ];
  }
}

function encodePart(part: InputPart): unknown {
  if (part.type === "text") return { type: "input_text", text: part.text };
  return { type: "input_image", image_url: dataUrl(part) };
}

function encodeOutput(part: ModelOutputPart, item: Fields | undefined): readonly unknown[] {
  switch (part.kind) {
    case "reasoning":
      // An item of reasoning without its encrypted content can only be looked up at the provider, where nothing is stored.
      return item === undefined || (item["type"] === "reasoning" && text(item["encrypted_content"]) === undefined)
        ? []
        : [item];
    case "text":
      return [item ?? { type: "message", role: "assistant", content: [{ type: "output_text", text: part.text }] }];
    case "toolCall":
      return [encodeCall(part, item)];
  }
}

/** The call id of an item may have been changed to make it unique, and its name to one that the service accepts. */
function encodeCall(call: ModelToolCall, item: Fields | undefined): unknown {
  const { callId: call_id, name, input } = call;
  if (call.shape === "freeform") return { type: "custom_tool_call", input, ...item, name, call_id };
  return { type: "function_call", ...item, name, call_id, arguments: argumentsText(call) };
}
