/**
 * Chat Completions as OpenAI and the many servers that copy it speak it. Only fields that all of them know are sent,
 * unless the provider is OpenAI itself. Freeform tools travel as JSON with one field.
 */
import type { InputPart, ModelOutputPart } from "@heddle/protocol";
import type { ModelInfo } from "../catalog.ts";
import { outputLimitField } from "../quirks.ts";
import type { ModelInput, ModelRequest, ToolSpec } from "../stream.ts";
import { argumentsText } from "./calls.ts";
import { decodeChat } from "./openai-chat-decode.ts";
import { strictSchema } from "./strict-output.ts";
import { record } from "./untrusted.ts";
import { kept, offeredTool, OUTPUT_SCHEMA_NAME, type Wire, type WireCall, type WireContext } from "./wire.ts";

export const openaiChat: Wire = { encode, decode: decodeChat };

function encode({ provider, request, info }: WireContext): WireCall {
  const { effort, outputSchema, maxOutputTokens } = request;
  const strict = strictSchema(outputSchema, "openai");
  const limit = outputLimitField(provider, info);
  const isOpenAi = provider.vendor === "openai";
  return {
    path: "/chat/completions",
    body: {
      model: request.model,
      messages: encodeMessages(request, (part) => kept(provider, part.opaque)),
      ...(request.tools.length === 0
        ? {}
        : { tools: request.tools.map((tool) => encodeTool(tool, info)), tool_choice: "auto" }),
      ...(effort === undefined ? {} : { reasoning_effort: effort }),
      ...(outputSchema === undefined
        ? {}
        : {
            response_format: {
              type: "json_schema",
              json_schema: {
                name: OUTPUT_SCHEMA_NAME,
                strict: strict !== undefined,
                schema: strict ?? outputSchema,
              },
            },
          }),
      ...(maxOutputTokens === undefined || limit === undefined ? {} : { [limit]: maxOutputTokens }),
      ...(isOpenAi ? { prompt_cache_key: request.cacheKey, store: false } : {}),
      stream: true,
      stream_options: { include_usage: true },
    },
  };
}

function encodeTool(tool: ToolSpec, info: ModelInfo): unknown {
  return { type: "function", function: offeredTool(tool, info) };
}

type Kept = (part: ModelOutputPart) => unknown;

function encodeMessages(request: ModelRequest, keptOf: Kept): unknown[] {
  const messages: unknown[] = [{ role: "system", content: request.instructions }];
  // A tool message cannot show an image; a user message after the last result of the answer can.
  let images: InputPart[] = [];
  const flush = (): void => {
    if (images.length > 0) messages.push({ role: "user", content: images.map(encodePart) });
    images = [];
  };
  for (const entry of request.input) {
    if (entry.kind !== "toolResult") flush();
    messages.push(encodeEntry(entry, keptOf));
    if (entry.kind === "toolResult") images.push(...entry.parts.filter((part) => part.type === "image"));
  }
  flush();
  return messages;
}

function encodeEntry(entry: ModelInput, keptOf: Kept): unknown {
  switch (entry.kind) {
    case "user":
      return { role: "user", content: encodeContent(entry.parts) };
    case "assistant":
      return encodeAssistant(entry.parts, keptOf);
    case "toolResult": {
      const texts = entry.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
      const content = texts.length > 0 ? texts.join("\n") : "The result is the image in the next message.";
      return { role: "tool", tool_call_id: entry.callId, content };
    }
  }
}

/** A bare string is what the simplest servers understand. */
function encodeContent(parts: readonly InputPart[]): unknown {
  return parts.every((part) => part.type === "text")
    ? parts.map((part) => part.text).join("\n")
    : parts.map(encodePart);
}

function encodePart(part: InputPart): unknown {
  if (part.type === "text") return part;
  return { type: "image_url", image_url: { url: `data:${part.mediaType};base64,${part.base64}` } };
}

function encodeAssistant(parts: readonly ModelOutputPart[], keptOf: Kept): unknown {
  const content = parts.flatMap((part) => (part.kind === "text" && part.text !== "" ? [part.text] : [])).join("\n");
  const calls = parts.filter((part) => part.kind === "toolCall");
  const signed = parts.filter((part) => part.kind === "text").map((part) => extraOf(keptOf(part)));
  const reasoning = parts.filter((part) => part.kind === "reasoning").map((part) => record(keptOf(part)) ?? {});
  return {
    role: "assistant",
    content: content === "" && calls.length > 0 ? null : content,
    ...Object.assign({}, ...signed),
    // Reasoning goes back within a chain of tool calls only: some servers demand it there, others refuse it elsewhere.
    ...(calls.length === 0 ? {} : Object.assign({}, ...reasoning)),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call) => ({
            id: call.callId,
            type: "function",
            function: { name: call.name, arguments: argumentsText(call) },
            ...extraOf(keptOf(call)),
          })),
        }),
  };
}

/** Google signs its calls and texts in a field of its own and wants it back in its place. */
function extraOf(kept: unknown): { extra_content?: unknown } {
  const extra = record(kept)?.["extra_content"];
  return extra === undefined ? {} : { extra_content: extra };
}
