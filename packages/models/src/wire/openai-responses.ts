/**
 * OpenAI Responses. Nothing is stored at the provider: each request carries the whole conversation, and every item the
 * model made goes back as it came, its encrypted reasoning included.
 */
import type { InputPart, ModelOutputPart, ModelToolCall } from "@heddle/protocol";
import type { ModelInfo } from "../catalog.ts";
import { outputLimitField } from "../quirks.ts";
import type { ModelInput, ModelRequest, ToolSpec } from "../stream.ts";
import { argumentsText } from "./calls.ts";
import { decodeResponses } from "./openai-responses-decode.ts";
import { strictSchema } from "./strict-output.ts";
import { record, text } from "./untrusted.ts";
import { kept, offeredTool, OUTPUT_SCHEMA_NAME, type Wire, type WireCall, type WireContext } from "./wire.ts";

export const openaiResponses: Wire = { encode, decode: decodeResponses };

function encode({ provider, request, info }: WireContext): WireCall {
  const { effort, outputSchema, maxOutputTokens } = request;
  const strict = strictSchema(outputSchema, "openai");
  const limit = outputLimitField(provider, info);
  return {
    path: "/responses",
    body: {
      model: request.model,
      instructions: request.instructions,
      input: request.input.flatMap((entry) => encodeEntry(entry, (part) => kept(provider, part.opaque))),
      ...encodeTools(request, info),
      ...(effort === undefined ? {} : { reasoning: { effort, summary: "auto" } }),
      ...(outputSchema === undefined
        ? {}
        : {
            text: {
              format: {
                type: "json_schema",
                name: OUTPUT_SCHEMA_NAME,
                strict: strict !== undefined,
                schema: strict ?? outputSchema,
              },
            },
          }),
      ...(maxOutputTokens === undefined || limit === undefined ? {} : { [limit]: maxOutputTokens }),
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

/** The call id of an item may have been changed to tell twins apart, and its name to one that is taken back. */
function encodeCall(call: ModelToolCall, item: Readonly<Record<string, unknown>> | undefined): unknown {
  const { callId: call_id, name, input } = call;
  if (call.shape === "freeform") return { type: "custom_tool_call", input, ...item, name, call_id };
  return { type: "function_call", ...item, name, call_id, arguments: argumentsText(call) };
}
