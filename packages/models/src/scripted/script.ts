/**
 * What a scripted model says: a list of steps, one for each answer. The step played is the number of answers already in
 * the request, so a resumed thread continues where it stopped, and the same request always gets the same answer.
 */
import { HeddleError, type ModelOutputPart } from "@heddle/protocol";
import type { ProviderConfig } from "../providers/providers.ts";
import type { Script, ScriptStep } from "./script-schema.ts";

export type { Script, ScriptCall, ScriptStep } from "./script-schema.ts";

/** The answer after the last step, so that a thread can continue past the end of its script. */
const CLOSING_STEP: ScriptStep = { text: "The script has ended. I have nothing more to do." };

export function stepAt(script: Script, index: number): ScriptStep {
  return script[index] ?? CLOSING_STEP;
}

/** The whole answer of a step, as parts. `makeId` names calls that have no id of their own. */
export function partsOf(
  step: ScriptStep,
  shapeOf: (tool: string) => "json" | "freeform",
  makeId: (callIndex: number) => string,
): ModelOutputPart[] {
  const parts: ModelOutputPart[] = [];
  if (step.reasoning !== undefined) parts.push({ kind: "reasoning", summary: [step.reasoning] });
  if (step.text !== undefined) parts.push({ kind: "text", text: step.text });
  for (const [index, call] of (step.calls ?? []).entries()) {
    const input = typeof call.args === "string" ? call.args : JSON.stringify(call.args);
    const callId = call.id ?? makeId(index);
    parts.push({ kind: "toolCall", callId, name: call.tool, input, shape: shapeOf(call.tool) });
  }
  return parts;
}

/** Loads the schema only for a scripted provider. */
export async function resolveScript(
  provider: string,
  source: Pick<ProviderConfig, "script" | "scriptFile">,
): Promise<Script> {
  const { parseScript, readScriptFile } = await import("./script-schema.ts");
  if (source.script !== undefined) return parseScript(source.script, `provider ${provider}: script`);
  if (source.scriptFile !== undefined) return readScriptFile(source.scriptFile);
  throw new HeddleError("config.invalid", `provider ${provider}: give it a script or a scriptFile`);
}
