/**
 * What the real services refuse although their schemas allow it, in their own words, so that a test meets it offline. Each
 * rule looks at one request, as it came.
 */
import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { HttpWire } from "./testing-frames.ts";
import { list, parseJson, record, text, type Json } from "../wire/untrusted.ts";

type Fields = Readonly<Record<string, Json>>;

interface Asked {
  readonly wire: HttpWire;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

export interface Refusal {
  readonly kind: "status";
  readonly status: number;
  readonly body: unknown;
}

/** undefined: the request is answered. */
export function refusalOf({ wire, headers, body }: Asked): Refusal | undefined {
  const fields = record(body) ?? {};
  if (!isWellFormed(body)) return UNREADABLE[wire];
  switch (wire) {
    case "anthropic":
      return anthropicRefusal(fields, String(headers["anthropic-beta"] ?? ""));
    case "openai-responses":
      return responsesRefusal(fields);
    case "openai-chat":
      return chatRefusal(fields);
    case "gemini":
      return geminiRefusal(fields);
  }
}

/** Half a surrogate pair, in a string or a key: parsers that are stricter than this one refuse the whole body. */
function isWellFormed(value: Json): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, entry]) => name.isWellFormed() && isWellFormed(entry));
}

const NO_JSON = "We could not parse the JSON body of your request.";

const UNREADABLE: Readonly<Record<HttpWire, Refusal>> = {
  anthropic: anthropicError("The request body is not valid JSON: no low surrogate in string"),
  "openai-responses": openaiRefusal(NO_JSON, ""),
  "openai-chat": openaiRefusal(NO_JSON, ""),
  gemini: geminiError("Invalid JSON payload received. Unexpected end of string."),
};

/** What a call that stands in the conversation may be named. */
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

function openaiRefusal(message: string, param: string, status = 400): Refusal {
  const type = status === 400 ? "invalid_request_error" : "server_error";
  return { kind: "status", status, body: { error: { message, type, param, code: null } } };
}

function anthropicError(message: string): Refusal {
  const body = { type: "error", error: { type: "invalid_request_error", message } };
  return { kind: "status", status: 400, body };
}

function anthropicRefusal(body: Fields, betas: string): Refusal | undefined {
  const refuse = anthropicError;
  for (const [index, tool] of list(body["tools"]).entries()) {
    const schema = record(record(tool)?.["input_schema"]) ?? {};
    if (["oneOf", "anyOf", "allOf"].some((name) => schema[name] !== undefined)) {
      const what = "input_schema does not support oneOf, allOf, or anyOf at the top level";
      return refuse(`tools.${index}.custom.input_schema: ${what}`);
    }
    if (Object.keys(record(schema["properties"]) ?? {}).some((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name))) {
      const what = "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'";
      return refuse(`tools.${index}.custom.input_schema.properties: ${what}`);
    }
  }
  const messages = list(body["messages"]).map((message) => record(message) ?? {});
  for (const [index, message] of messages.entries()) {
    const blocks = blocksOf(message["content"]).map((block) => record(block) ?? {});
    const at = `messages.${index}`;
    if (blocks.length === 0) return refuse(`${at}: all messages must have non-empty content`);
    for (const [part, block] of blocks.entries()) {
      const why = blockRefusal(block, { ...body, messages: messages.slice(0, index) }, betas);
      if (why !== undefined) return refuse(`${at}.content.${part}: ${why}`);
    }
    if (message["role"] === "assistant" && text(blocks.at(-1)?.["type"])?.endsWith("thinking") === true)
      return refuse(`${at}: The final block in an assistant message cannot be \`thinking\`.`);
  }
  const format = record(record(record(body["output_config"])?.["format"])?.["schema"]);
  return format === undefined || isClosed(format)
    ? undefined
    : refuse("output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false");
}

/** A text may stand for one block. */
function blocksOf(content: Json): readonly Json[] {
  return typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : list(content);
}

function blockRefusal(block: Fields, before: Fields, betas: string): string | undefined {
  if (block["type"] === "tool_use" && !TOOL_NAME.test(text(block["name"]) ?? ""))
    return "tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'";
  const content = block["type"] === "tool_result" ? blocksOf(block["content"]) : [block];
  if (content.some((part) => record(part)?.["type"] === "text" && text(record(part)?.["text"])?.trim() === ""))
    return "text content blocks must contain non-whitespace text";
  if (block["is_error"] === true && content.length === 0) return "content cannot be empty if `is_error` is true";
  if (block["type"] !== "thinking") return undefined;
  const signature = text(block["signature"]) ?? "";
  if (!signature.startsWith("signed")) return "Invalid `signature` in `thinking` block";
  const [, , , prefix] = signature.split("-");
  const isBound = /claude-[a-z]+-5-[1-9]/.test(text(before["model"]) ?? "") && prefix !== undefined;
  if (!isBound || prefix === prefixOf(before)) return undefined;
  const behavior = record(record(before["thinking"])?.["block_binding"])?.["prefix_mismatch_behavior"];
  if (behavior === "drop_block" && betas.includes("thinking-binding-controls-2026-08-01")) return undefined;
  return "Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
}

/** What a signature is bound to: everything before the block but its cache marks. */
export function prefixOf(body: unknown): string {
  const { system, tools, messages } = record(body) ?? {};
  const content = JSON.stringify([system, tools, messages], (name, value: unknown) =>
    name === "cache_control" || name === "signature" ? undefined : value,
  );
  return createHash("sha256").update(content).digest("hex").slice(0, 12);
}

function responsesRefusal(body: Fields): Refusal | undefined {
  const items = list(body["input"]).map((item) => record(item) ?? {});
  const isOwn = (item: Fields | undefined): boolean =>
    item?.["role"] === "assistant" || /_call$|^reasoning$/.test(text(item?.["type"]) ?? "");
  for (const [index, item] of items.entries()) {
    if (item["type"] !== "reasoning" || isOwn(items[index + 1])) continue;
    const message = `Item '${text(item["id"]) ?? ""}' of type 'reasoning' was provided without its required following item.`;
    return openaiRefusal(message, "input");
  }
  for (const [index, item] of items.entries()) {
    const isCall = item["type"] === "function_call" || item["type"] === "custom_tool_call";
    const why = isCall ? nameRefusal(item["name"], `input[${index}].name`) : undefined;
    if (why !== undefined) return why;
  }
  if (
    text(body["model"])?.startsWith("gpt-4") === true &&
    list(body["include"]).includes("reasoning.encrypted_content")
  )
    return openaiRefusal("Encrypted content is not supported with this model.", "include");
  const format = record(record(body["text"])?.["format"]);
  return toolRefusal(list(body["tools"])) ?? strictRefusal(format, "text.format.schema");
}

function nameRefusal(name: Json, param: string): Refusal | undefined {
  if (TOOL_NAME.test(text(name) ?? "")) return undefined;
  return openaiRefusal(`Invalid '${param}': string does not match pattern '^[a-zA-Z0-9_-]+$'.`, param);
}

function chatRefusal(body: Fields): Refusal | undefined {
  const model = text(body["model"]) ?? "";
  for (const [index, value] of list(body["messages"]).entries()) {
    const message = record(value) ?? {};
    if (message["role"] !== "assistant") continue;
    const calls = list(message["tool_calls"]);
    if ((text(message["content"]) ?? "") === "" && calls.length === 0)
      return openaiRefusal(`messages[${index}]: assistant message must have either content or tool_calls`, "messages");
    for (const [nth, call] of calls.entries()) {
      const { name, arguments: written } = record(record(call)?.["function"]) ?? {};
      const why = nameRefusal(name, `messages[${index}].tool_calls[${nth}].function.name`);
      if (why !== undefined) return why;
      const source = text(written) ?? "";
      const parsed = record(parseJson(source));
      if (parsed === undefined || !isWellFormed(parsed))
        return openaiRefusal(`Failed to parse tool call arguments as JSON: ${source}`, "messages", 500);
    }
  }
  if (/^(o\d|gpt-5)/.test(model) && body["max_tokens"] !== undefined) {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.";
    return openaiRefusal(message, "max_tokens");
  }
  const format = record(record(body["response_format"])?.["json_schema"]);
  return toolRefusal(list(body["tools"])) ?? strictRefusal(format, "response_format");
}

function toolRefusal(tools: readonly Json[]): Refusal | undefined {
  for (const value of tools) {
    const outer = record(value) ?? {};
    const tool = record(outer["function"]) ?? outer;
    const schema = record(tool["parameters"]) ?? {};
    // Tools of other kinds, such as searches of the service's own, have no schema to refuse.
    const why = text(outer["type"]) === "function" ? schemaRefusal(schema) : undefined;
    if (why === undefined) continue;
    return openaiRefusal(`Invalid schema for function '${text(tool["name"]) ?? ""}': ${why}`, "tools[0].parameters");
  }
  return undefined;
}

function schemaRefusal(schema: Fields): string | undefined {
  const isPlain = ["oneOf", "anyOf", "allOf", "enum", "not"].every((name) => schema[name] === undefined);
  if (schema["type"] !== "object" || !isPlain)
    return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.";
  return everyNode(schema).some(isListWithoutItems) ? "array schema missing items." : undefined;
}

function isListWithoutItems(node: Fields): boolean {
  return [node["type"]].flat().includes("array") && node["items"] === undefined;
}

function everyNode(value: Json): readonly Fields[] {
  if (Array.isArray(value)) return value.flatMap(everyNode);
  const node = record(value);
  return node === undefined ? [] : [node, ...Object.values(node).flatMap(everyNode)];
}

function strictRefusal(format: Fields | undefined, param: string): Refusal | undefined {
  if (format?.["strict"] !== true || isClosed(format["schema"])) return undefined;
  const message = `Invalid schema for response_format: 'additionalProperties' is required to be supplied and to be false.`;
  return openaiRefusal(message, param);
}

function isClosed(schema: Json): boolean {
  return everyNode(schema).every((node) => node["type"] !== "object" || node["additionalProperties"] === false);
}

function geminiError(message: string): Refusal {
  return { kind: "status", status: 400, body: { error: { code: 400, message, status: "INVALID_ARGUMENT" } } };
}

function geminiRefusal(body: Fields): Refusal | undefined {
  const refuse = geminiError;
  const pieces = list(body["contents"]).flatMap((content) => list(record(content)?.["parts"]));
  for (const piece of pieces) {
    const { functionCall, functionResponse } = record(piece) ?? {};
    const call = record(functionCall) ?? record(functionResponse);
    if (call !== undefined && !(TOOL_NAME.test(text(call["name"]) ?? "") && /^[a-z_]/i.test(text(call["name"]) ?? "")))
      return refuse("Invalid function name. Must start with a letter or an underscore.");
  }
  const declared = list(body["tools"]).flatMap((tool) => list(record(tool)?.["functionDeclarations"]));
  for (const [index, declaration] of declared.entries()) {
    const at = `GenerateContentRequest.tools[0].function_declarations[${index}].parameters`;
    const nodes = everyNode(record(declaration)?.["parametersJsonSchema"]);
    if (nodes.some(isListWithoutItems)) return refuse(`${at}.items: missing field.`);
    if (nodes.some((node) => Array.isArray(node["type"])))
      return refuse(`${at}.items: field predicate failed: == Type.ARRAY`);
    if (nodes.some((node) => node["allOf"] !== undefined || node["const"] !== undefined))
      return refuse(`${at}: Unknown name "const" or "allOf": Cannot find field.`);
  }
  return undefined;
}
