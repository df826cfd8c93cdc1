/**
 * OpenAI Responses. Nothing is stored at the provider: each request carries the whole conversation, and every item the
 * model made goes back as it came, its encrypted reasoning included.
 */
import type { InputPart, ModelOutputPart, ModelToolCall } from "@heddle/protocol";
import type { ModelInput, ModelRequest, ToolSpec } from "../stream.ts";
import { decodeResponses } from "./openai-responses-decode.ts";
import { record, text } from "./untrusted.ts";
import { kept, OUTPUT_SCHEMA_NAME, type Wire, type WireCall, type WireContext } from "./wire.ts";

export const openaiResponses: Wire = { encode, decode: decodeResponses };

function encode({ provider, request }: WireContext): WireCall {
  const { effort, outputSchema, maxOutputTokens } = request;
  return {
    path: "/responses",
    body: {
      model: request.model,
      instructions: request.instructions,
      input: request.input.flatMap((entry) => encodeEntry(entry, (part) => kept(provider, part.opaque))),
      ...encodeTools(request),
      ...(effort === undefined ? {} : { reasoning: { effort, summary: "auto" } }),
      ...(outputSchema === undefined
        ? {}
        : { text: { format: { type: "json_schema", name: OUTPUT_SCHEMA_NAME, strict: true, schema: outputSchema } } }),
      ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
      store: false,
      stream: true,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: request.cacheKey,
    },
  };
}

function encodeTools({ tools }: ModelRequest): Record<string, unknown> {
  if (tools.length === 0) return {};
  return { tools: tools.map(encodeTool), tool_choice: "auto", parallel_tool_calls: true };
}

function encodeTool({ name, description, shape, parameters }: ToolSpec): unknown {
  if (shape === "freeform") return { type: "custom", name, description };
  return {
    type: "function",
    name,
    description,
    strict: false,
    parameters: parameters ?? { type: "object", properties: {} },
  };
}

type Kept = (part: ModelOutputPart) => unknown;

function encodeEntry(entry: ModelInput, keptOf: Kept): readonly unknown[] {
  switch (entry.kind) {
    case "user":
      return [{ type: "message", role: "user", content: entry.parts.map(encodePart) }];
    case "assistant":
      return entry.parts.flatMap((part) => encodeOutput(part, record(keptOf(part))));
    case "toolResult":
      return [
        {
          type: entry.shape === "freeform" ? "custom_tool_call_output" : "function_call_output",
          call_id: entry.callId,
          output: encodeResult(entry.parts),
        },
      ];
  }
}

/** Bare text is understood by every server of this wire; a list only by newer ones, so it is used where an image needs it. */
function encodeResult(parts: readonly InputPart[]): unknown {
  if (parts.every((part) => part.type === "text")) return parts.map((part) => part.text).join("\n");
  return parts.map(encodePart);
}

function encodePart(part: InputPart): unknown {
  if (part.type === "text") return { type: "input_text", text: part.text };
  return { type: "input_image", image_url: `data:${part.mediaType};base64,${part.base64}` };
}

function encodeOutput(part: ModelOutputPart, item: Readonly<Record<string, unknown>> | undefined): readonly unknown[] {
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

/** The call id of an item may have been changed to tell twins apart. */
function encodeCall(call: ModelToolCall, item: Readonly<Record<string, unknown>> | undefined): unknown {
  if (item !== undefined) return { ...item, call_id: call.callId };
  const { callId: call_id, name, input } = call;
  if (call.shape === "freeform") return { type: "custom_tool_call", call_id, name, input };
  return { type: "function_call", call_id, name, arguments: input };
}
