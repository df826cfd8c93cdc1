/**
 * The last message of a turn with an output schema, checked here whatever the provider promises. A message that
 * violates the schema is sent back once; a second one fails the turn.
 */
import { HeddleError, jsonProblem, type ModelOutputPart } from "@heddle/protocol";
import { boundedMatcher } from "./bounded-match.ts";
import type { JsonSchema } from "./json-schema.ts";

const MAX_SHOWN_CHARS = 2000;

/** undefined: no schema is set. Throws `usage.invalid` for one that cannot be checked. */
export async function outputSchemaOf(settings: { readonly outputSchema?: unknown }): Promise<JsonSchema | undefined> {
  if (settings.outputSchema === undefined) return undefined;
  return (await import("./json-schema.ts")).parseJsonSchema(settings.outputSchema);
}

export function outputViolations(schema: JsonSchema, output: readonly ModelOutputPart[]): readonly string[] {
  if (output.some(({ kind }) => kind === "toolCall")) return ["the answer: it calls a tool instead of answering"];
  const texts = output.flatMap((part) => (part.kind === "text" && part.text.trim() !== "" ? [part.text] : []));
  const text = texts.at(-1);
  if (text === undefined) return ["the answer: there is none"];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [`the answer: it is not JSON (${jsonProblem(text)})`];
  }
  return schema.violations(value, { matches: boundedMatcher() });
}

export function repairText(violations: readonly string[]): string {
  return [
    "Your last message does not have the shape that was asked for:",
    ...violations.map((violation) => `- ${violation}`),
    "",
    "Answer again with the corrected JSON alone: no other text, no code fence, no tool calls.",
  ].join("\n");
}

export function schemaViolated(violations: readonly string[]): HeddleError {
  const shown = violations.join("; ").slice(0, MAX_SHOWN_CHARS);
  return new HeddleError("schema.violated", `the answer does not match the output schema: ${shown}`, {
    details: { violations: shown, count: violations.length },
  });
}
