import type { ModelInput } from "@heddle/models";
import { inputTokens } from "./context-size.ts";

export interface ContextEntry {
  readonly role: "surroundings" | "message" | "note" | "summary" | "answer" | "result";
  /** How later events refer to it: the turn of an admitted input, the item of steering, the request of an answer. */
  readonly name?: string;
  readonly input: ModelInput;
  readonly tokens: number;
}

export function entryOf(role: ContextEntry["role"], input: ModelInput, name?: string): ContextEntry {
  return { role, input, tokens: inputTokens(input), ...(name === undefined ? {} : { name }) };
}

export function userText(text: string): ModelInput & { readonly kind: "user" } {
  return { kind: "user", parts: [{ type: "text", text }] };
}
