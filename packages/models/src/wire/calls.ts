/** Tool calls on wires that know only JSON arguments: freeform input travels as `{ "input": "…" }` both ways. */
import type { ModelToolCall } from "@heddle/protocol";
import type { ModelRequest } from "../requests/stream.ts";
import { parseJson, record, text, writeJson, type Json } from "./untrusted.ts";

export type ShapeOf = (tool: string) => "json" | "freeform";

export function shapesOf(request: ModelRequest): ShapeOf {
  const freeform = new Set(request.tools.filter((tool) => tool.shape === "freeform").map((tool) => tool.name));
  return (tool) => (freeform.has(tool) ? "freeform" : "json");
}

/** What the model wrote stays as it is when it is not JSON: dispatch answers the model. */
export function readCall(call: { callId: string; name: string; json: string }, shapeOf: ShapeOf): ModelToolCall {
  const shape = shapeOf(call.name);
  const json = givenArguments(call.json);
  const input = shape === "freeform" ? (text(record(parseJson(json))?.["input"]) ?? call.json) : json;
  return { kind: "toolCall", callId: call.callId, name: call.name, input, shape };
}

/** Models write nothing at all, or `null`, for a tool without arguments. */
export function givenArguments(json: string): string {
  const trimmed = json.trim();
  return trimmed === "" || trimmed === "null" ? "{}" : json;
}

/** A piece of the arguments as a server sends it: text, or the whole of them as an object. */
export function argumentsPiece(value: Json): string {
  return text(value) ?? (record(value) === undefined ? "" : JSON.stringify(value));
}

/** The arguments as JSON text of an object: servers that parse what they are sent refuse anything else. */
export function argumentsText(call: ModelToolCall): string {
  const isAsWritten =
    call.shape === "json" && record(parseJson(call.input)) !== undefined && !SURROGATE_ESCAPE.test(call.input);
  return isAsWritten ? call.input : writeJson(argumentsObject(call));
}

/** It may be half a pair; written anew, whole pairs stay and halves do not. */
const SURROGATE_ESCAPE = /\\ud[89a-f]/i;

/** The arguments as an object, for wires that want one; broken JSON goes back under a name that says so. */
export function argumentsObject(call: ModelToolCall): Readonly<Record<string, unknown>> {
  if (call.shape === "freeform") return { input: call.input };
  return record(parseJson(givenArguments(call.input))) ?? { invalid_json: call.input };
}
