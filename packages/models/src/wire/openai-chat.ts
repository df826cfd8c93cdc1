/**
 * Chat Completions as OpenAI and the many servers that copy it speak it. Only fields that all of them know are sent,
 * unless the provider is OpenAI itself. Freeform tools travel as JSON with one field.
 */
import { defined, type InputPart, type ModelOutputPart, type Usage } from "@heddle/protocol";
import type { Answer, Ending } from "../requests/answer.ts";
import { failureIn, malformed } from "../requests/failure.ts";
import { tierOf, verbosityField } from "./answering.ts";
import type { Provider } from "../providers/providers.ts";
import type { ModelInput } from "../requests/stream.ts";
import { argumentsText, readCall, shapesOf } from "./calls.ts";
import { createCalls } from "./chat-calls.ts";
import { createReasoning, textIn } from "./chat-reasoning.ts";
import { endingIn } from "./endings.ts";
import { dataUrl, namedSchema, outputLimit, readUsage, textOrList } from "./openai.ts";
import { list, record, text, type Fields } from "./untrusted.ts";
import {
  fieldsIn,
  instructionTexts,
  keep,
  kept,
  offeredTool,
  type Decoder,
  type Wire,
  type WireCall,
  type WireContext,
} from "./wire.ts";

export const openaiChat: Wire = { encode, decode: decodeChat };

function encode(context: WireContext): WireCall {
  const { provider, request, info } = context;
  const { effort, outputSchema } = request;
  return {
    path: "/chat/completions",
    body: {
      model: request.model,
      messages: encodeMessages(context),
      ...(request.tools.length === 0
        ? {}
        : {
            tools: request.tools.map((tool) => ({ type: "function", function: offeredTool(tool, info) })),
            tool_choice: "auto",
          }),
      ...(effort === undefined ? {} : { reasoning_effort: effort }),
      ...(outputSchema === undefined
        ? {}
        : { response_format: { type: "json_schema", json_schema: namedSchema(outputSchema) } }),
      ...defined({ verbosity: verbosityField(request, info), service_tier: tierOf(request, provider, info) }),
      ...outputLimit(context),
      ...(provider.vendor === "openai" ? { prompt_cache_key: request.cacheKey, store: false } : {}),
      stream: true,
      stream_options: { include_usage: true },
    },
  };
}

function encodeMessages(context: WireContext): unknown[] {
  const { request, provider } = context;
  // One message: many servers accept a system message only at the beginning, and only one.
  const system = instructionTexts(context).join("\n\n");
  const messages: unknown[] = system === "" ? [] : [{ role: "system", content: system }];
  // A tool message cannot show an image; a user message after the last result of the answer can.
  let images: InputPart[] = [];
  const flush = (): void => {
    if (images.length > 0) messages.push({ role: "user", content: images.map(encodePart) });
    images = [];
  };
  for (const entry of request.input) {
    if (entry.kind !== "toolResult") flush();
    messages.push(encodeEntry(entry, provider));
    if (entry.kind === "toolResult") images.push(...entry.parts.filter((part) => part.type === "image"));
  }
  flush();
  return messages;
}

function encodeEntry(entry: ModelInput, provider: Provider): unknown {
  switch (entry.kind) {
    case "user":
      return { role: "user", content: textOrList(entry.parts, encodePart) };
    case "assistant":
      return encodeAssistant(entry.parts, provider);
    case "toolResult": {
      const texts = entry.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
      const content = texts.length > 0 ? texts.join("\n") : "The result is the image in the next message.";
      return { role: "tool", tool_call_id: entry.callId, content };
    }
  }
}

function encodePart(part: InputPart): unknown {
  if (part.type === "text") return part;
  return { type: "image_url", image_url: { url: dataUrl(part) } };
}

function encodeAssistant(parts: readonly ModelOutputPart[], provider: Provider): unknown {
  const own = (part: ModelOutputPart): Fields => record(kept(provider, part.opaque)) ?? {};
  const content = parts.flatMap((part) => (part.kind === "text" && part.text !== "" ? [part.text] : [])).join("\n");
  const calls = parts.filter((part) => part.kind === "toolCall");
  const signed = parts.filter((part) => part.kind === "text").map((part) => extraOf(own(part)));
  const reasoning = parts.filter((part) => part.kind === "reasoning").map(own);
  return {
    role: "assistant",
    content: content === "" && calls.length > 0 ? null : content,
    ...Object.assign({}, ...signed),
    // Reasoning goes back within a chain of tool calls only: some servers demand it there, others refuse it elsewhere.
    ...(calls.length === 0
      ? {}
      : {
          ...Object.assign({}, ...reasoning),
          tool_calls: calls.map((call) => ({
            id: call.callId,
            type: "function",
            function: { name: call.name, arguments: argumentsText(call) },
            ...extraOf(own(call)),
          })),
        }),
  };
}

/** Google signs its calls and texts in a field of its own, which must be sent back. */
function extraOf({ extra_content }: Fields): { extra_content?: unknown } {
  return defined({ extra_content });
}

// The wire has no parts; they are numbered here: 0 reasoning, 1 text, then the tool calls in their order.
const REASONING = 0;
const TEXT = 1;
const FIRST_CALL = 2;

/** A missing end mark is accepted once there is a finish reason. */
function decodeChat({ provider, request }: WireContext, answer: Answer): Decoder {
  const shapeOf = shapesOf(request);
  const calls = createCalls(provider, answer);
  const reasoning = createReasoning();
  let usage: Usage | undefined;
  let finishReason: string | undefined;
  let refusal = "";
  let extra: Fields | undefined;

  function takeDelta(delta: Fields): void {
    for (const shown of reasoning.take(delta)) answer.reasoning(REASONING, shown, { channel: "text", section: 0 });
    answer.text(TEXT, textIn(delta["content"]));
    const declined = text(delta["refusal"]) ?? "";
    refusal += declined;
    answer.text(TEXT, declined);
    extra = record(delta["extra_content"]) ?? extra;
    calls.take(delta["tool_calls"]);
  }

  const own = (kept: Fields | undefined): { opaque?: ReturnType<typeof keep> } =>
    kept === undefined ? {} : { opaque: keep(provider, { extra_content: kept }) };

  function finish(): void {
    const ending = endingOf(provider, finishReason, refusal);
    const shown = reasoning.whole();
    if (shown !== undefined) answer.part(REASONING, { ...shown.part, opaque: keep(provider, shown.sendBack) });
    if (answer.textAt(TEXT) !== "") answer.part(TEXT, { kind: "text", text: answer.textAt(TEXT), ...own(extra) });
    for (const [at, { id, name, json, extra: signed }] of calls.drafts.entries()) {
      answer.part(FIRST_CALL + at, { ...readCall({ callId: id, name, json }, shapeOf), ...own(signed) });
    }
    answer.finish({ ...ending, usage });
  }

  return {
    push({ data }) {
      if (data.trim() === "[DONE]") {
        if (finishReason !== undefined || calls.drafts.length > 0 || answer.textAt(TEXT) !== "") finish();
        return true;
      }
      const chunk = fieldsIn(provider, data);
      if (chunk["error"] !== undefined && chunk["error"] !== null)
        throw failureIn(provider, chunk) ?? malformed(provider, "an error without a reason", data);
      usage = readUsage(chunk["usage"], ["prompt", "completion"]) ?? usage;
      const choice = record(list(chunk["choices"])[0]);
      if (choice === undefined) return usage !== undefined;
      if (record(choice["error"]) !== undefined)
        throw failureIn(provider, choice) ?? malformed(provider, "an error without a reason", data);
      takeDelta(record(choice["delta"]) ?? record(choice["message"]) ?? {});
      // Some send an empty reason in every chunk.
      finishReason = text(choice["finish_reason"]) || finishReason;
      answer.isSettled = finishReason !== undefined;
      return true;
    },
    end() {
      if (finishReason !== undefined) finish();
    },
  };
}

function endingOf(provider: Provider, finishReason: string | undefined, refusal: string): Omit<Ending, "usage"> {
  if (refusal.trim() !== "") return { stopReason: "refusal", explanation: refusal };
  // A server without a reason ends with its end mark.
  const stopReason = finishReason === undefined ? "end" : endingIn(provider, "finish_reason", finishReason);
  return { stopReason, explanation: stopReason === "refusal" ? finishReason : undefined };
}
