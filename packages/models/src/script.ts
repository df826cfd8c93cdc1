/**
 * What a scripted model says: a list of steps, one for each answer. The step played is the number of answers already in
 * the request, so a resumed thread goes on where it stopped, and the same request always gets the same answer.
 */
import { HeddleError, type ModelOutputPart, type Usage } from "@heddle/protocol";

export const FAIL_CODES = [
  "provider.unreachable",
  "provider.stalled",
  "provider.cut",
  "provider.malformed",
  "provider.rate-limited",
  "provider.overloaded",
  "provider.rejected",
  "provider.context-exceeded",
  "auth.rejected",
  "model.unknown",
] as const;

export interface ScriptCall {
  readonly tool: string;
  /** An object for a JSON tool; a string is sent as it is, for a freeform tool or to play broken JSON. */
  readonly args: string | Readonly<Record<string, unknown>>;
  readonly id?: string | undefined;
}

export interface ScriptStep {
  readonly reasoning?: string | undefined;
  readonly text?: string | undefined;
  readonly calls?: readonly ScriptCall[] | undefined;
  readonly usage?: { readonly [Figure in keyof Usage]?: number | undefined } | undefined;
  /** Pause before the answer. */
  readonly delayMs?: number | undefined;
  readonly fail?: ScriptFailure | undefined;
}

export interface ScriptFailure {
  readonly code: (typeof FAIL_CODES)[number];
  readonly message?: string | undefined;
  /** How many attempts fail before the step is played; all of them when absent. */
  readonly times?: number | undefined;
}

export type Script = readonly ScriptStep[];

/** What a model without a step left says, so that a thread can go on past the end of its script. */
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
    parts.push({
      kind: "toolCall",
      callId: call.id ?? makeId(index),
      name: call.tool,
      input,
      shape: shapeOf(call.tool),
    });
  }
  return parts;
}

export interface ScriptSource {
  readonly script?: Script | undefined;
  readonly scriptFile?: string | undefined;
}

/** Only a scripted provider pays for the reading and checking of scripts. */
export async function resolveScript(provider: string, source: ScriptSource): Promise<Script> {
  const { parseScript, readScriptFile } = await import("./script-schema.ts");
  if (source.script !== undefined) return parseScript(source.script, `provider ${provider}: script`);
  if (source.scriptFile !== undefined) return readScriptFile(source.scriptFile);
  throw new HeddleError("config.invalid", `provider ${provider}: give it a script or a scriptFile`);
}
