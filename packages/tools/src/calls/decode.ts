/**
 * Turns the model's text into a value that a schema can check. Refuses hostile input: too large, too deep, not JSON, or
 * with keys that reach into prototypes. The message for the model names the field and what was expected.
 */
import { jsonProblem } from "@heddle/protocol";
import type { ArgumentSchema } from "./arguments.ts";

export interface ToolCall {
  readonly callId: string;
  /** As the model calls the tool. */
  readonly name: string;
  /** As the model wrote it: JSON text for `json`, the bare text for `freeform`. */
  readonly input: string;
  readonly shape: "json" | "freeform";
}

export type Decoded<T = unknown> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "bad"; readonly message: string };

/** A whole large source file fits; a runaway generation does not. */
const MAX_INPUT_BYTES = 2 * 1024 * 1024;
const MAX_DEPTH = 64;
const MAX_ISSUES = 8;

export function decodeInput(call: ToolCall, shape: "json" | "freeform"): Decoded {
  if (call.input.length > MAX_INPUT_BYTES || Buffer.byteLength(call.input) > MAX_INPUT_BYTES) {
    return bad(`the arguments are larger than ${MAX_INPUT_BYTES} bytes; split the work into smaller calls`);
  }
  if (call.shape === "freeform") {
    return shape === "freeform"
      ? { kind: "ok", value: call.input }
      : bad("this tool takes a JSON object, not bare text");
  }
  // A model that does not know the format sends the bare text; what begins like JSON is JSON.
  if (shape === "freeform" && /^\s*[^\s{["]/.test(call.input)) return { kind: "ok", value: call.input };
  // Some models send an empty text for "no arguments".
  const decoded = parseJson(call.input.trim() === "" ? "{}" : call.input);
  if (decoded.kind === "bad" || shape === "json") return decoded;
  return textField(decoded.value);
}

export function parseArguments<T>(schema: ArgumentSchema<T>, value: unknown): Decoded<T> {
  // The standard interface, so that no library has to be loaded here.
  const parsed = schema["~standard"].validate(value);
  if (parsed instanceof Promise) throw new TypeError("arguments of tools are judged at once");
  if (parsed.issues === undefined) return { kind: "ok", value: parsed.value };
  const issues = parsed.issues.slice(0, MAX_ISSUES).map(({ path = [], message }) => {
    return path.length === 0 ? message : `${path.map(String).join(".")}: ${message}`;
  });
  return bad(`invalid arguments: ${issues.join("; ")}`);
}

/** Wires without freeform tools carry the text in one string field. */
function textField(value: unknown): Decoded {
  if (typeof value === "string") return { kind: "ok", value };
  if (typeof value === "object" && value !== null) {
    for (const key of ["input", "patch"]) {
      const text: unknown = Reflect.get(value, key);
      if (typeof text === "string") return { kind: "ok", value: text };
    }
  }
  return bad('this tool takes one string field "input"');
}

function parseJson(text: string): Decoded {
  if (depthOfJson(text) > MAX_DEPTH) return bad(`the arguments are nested deeper than ${MAX_DEPTH} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return bad(`the arguments are not valid JSON: ${jsonProblem(text)}`);
  }
  return reachesPrototype(value) ? bad('a key "__proto__" is not accepted') : { kind: "ok", value };
}

/** Counted before parsing, so that no recursion meets a hostile depth. */
export function depthOfJson(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (isInString) {
      if (character === "\\") index += 1;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === "{" || character === "[") deepest = Math.max(deepest, (depth += 1));
    else if (character === "}" || character === "]") depth -= 1;
  }
  return deepest;
}

function reachesPrototype(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(reachesPrototype);
  return Object.entries(value).some(([key, inner]) => key === "__proto__" || reachesPrototype(inner));
}

function bad(message: string): { readonly kind: "bad"; readonly message: string } {
  return { kind: "bad", message };
}
