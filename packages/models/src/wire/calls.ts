/** Tool calls on wires that know only JSON arguments: freeform input travels as `{ "input": "…" }` both ways. */
import type { ModelToolCall } from "@heddle/protocol";
import type { ModelRequest } from "../stream.ts";
import { parseJson, record, text } from "./untrusted.ts";

export type ShapeOf = (tool: string) => "json" | "freeform";

export function shapesOf(request: ModelRequest): ShapeOf {
  const freeform = new Set(request.tools.filter((tool) => tool.shape === "freeform").map((tool) => tool.name));
  return (tool) => (freeform.has(tool) ? "freeform" : "json");
}

/** What the model wrote stays as it is when it is not JSON: dispatch answers the model. */
export function readCall(call: { callId: string; name: string; json: string }, shapeOf: ShapeOf): ModelToolCall {
  const shape = shapeOf(call.name);
  // Models write nothing at all for a tool without arguments.
  const json = call.json.trim() === "" ? "{}" : call.json;
  const input = shape === "freeform" ? (text(record(parseJson(json))?.["input"]) ?? call.json) : json;
  return { kind: "toolCall", callId: call.callId, name: call.name, input, shape };
}

/** The arguments as JSON text. */
export function argumentsText(call: ModelToolCall): string {
  return call.shape === "freeform" ? JSON.stringify({ input: call.input }) : call.input === "" ? "{}" : call.input;
}

/** The arguments as an object, for wires that want one; broken JSON goes back under a name that says so. */
export function argumentsObject(call: ModelToolCall): Readonly<Record<string, unknown>> {
  if (call.shape === "freeform") return { input: call.input };
  if (call.input.trim() === "") return {};
  return record(parseJson(call.input)) ?? { invalid_json: call.input };
}
