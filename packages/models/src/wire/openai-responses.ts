/**
 * OpenAI Responses. Nothing is stored at the provider: each request carries the whole conversation, and every item the
 * model made goes back as it came, its encrypted reasoning included.
 */
import type { InputPart, ModelOutputPart, ModelToolCall } from "@heddle/protocol";
import type { ModelInfo } from "../catalog.ts";
import type { Provider } from "../providers.ts";
import type { ModelInput, ModelRequest, ToolSpec } from "../stream.ts";
import { argumentsText } from "./calls.ts";
import { dataUrl, namedSchema, outputLimit, textOrList } from "./openai.ts";
import { decodeResponses } from "./responses-answer.ts";
import { record, text, type Fields } from "./untrusted.ts";
import { kept, offeredTool, type Wire, type WireCall, type WireContext } from "./wire.ts";

export const openaiResponses: Wire = { encode, decode: decodeResponses };

function encode(context: WireContext): WireCall {
  const { provider, request, info } = context;
  const { effort, outputSchema } = request;
  return {
    path: "/responses",
    body: {
      model: request.model,
      instructions: request.instructions,
      input: request.input.flatMap((entry) => encodeEntry(entry, provider)),
      ...encodeTools(request, info),
      ...(effort === undefined ? {} : { reasoning: { effort, summary: "auto" } }),
      ...(outputSchema === undefined
        ? {}
        : { text: { format: { type: "json_schema", ...namedSchema(outputSchema) } } }),
      ...outputLimit(context),
      store: false,
      stream: true,
      // Models that do not reason refuse to be asked for it.
      ...(info.isReasoning === false ? {} : { include: ["reasoning.encrypted_content"] }),
      prompt_cache_key: request.cacheKey,
    },
  };
}

function encodeTools({ tools }: ModelRequest, info: ModelInfo): Record<string, unknown> {
  if (tools.length === 0) return {};
  return { tools: tools.map((tool) => encodeTool(tool, info)), tool_choice: "auto", parallel_tool_calls: true };
}

function encodeTool(tool: ToolSpec, info: ModelInfo): unknown {
  if (tool.shape === "freeform") return { type: "custom", name: tool.name, description: tool.description };
  const { name, description, parameters } = offeredTool(tool, info);
  return { type: "function", name, description, strict: false, parameters };
}

function encodeEntry(entry: ModelInput, provider: Provider): readonly unknown[] {
  switch (entry.kind) {
    case "user":
      return [{ type: "message", role: "user", content: entry.parts.map(encodePart) }];
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
