/**
 * What a scripted model says: a list of steps, one for each answer. The step played is the number of answers already in
 * the request, so a resumed thread goes on where it stopped, and the same request always gets the same answer.
 */
import { readFile } from "node:fs/promises";
import { HeddleError, Usage, type ModelOutputPart } from "@heddle/protocol";
import { z } from "zod";

const FAIL_CODES = [
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

export const ScriptCall = z.strictObject({
  tool: z.string().min(1),
  /** An object for a JSON tool; a string is sent as it is, for a freeform tool or to play broken JSON. */
  args: z.union([z.string(), z.record(z.string(), z.unknown())]),
  id: z.string().min(1).optional(),
});
export type ScriptCall = z.infer<typeof ScriptCall>;

export const ScriptStep = z.strictObject({
  reasoning: z.string().optional(),
  text: z.string().optional(),
  calls: z.array(ScriptCall).optional(),
  usage: Usage.partial().optional(),
  /** Pause before the answer. */
  delayMs: z.number().int().nonnegative().max(600_000).optional(),
  fail: z
    .strictObject({
      code: z.enum(FAIL_CODES),
      message: z.string().optional(),
      /** How many attempts fail before the step is played; all of them when absent. */
      times: z.number().int().positive().optional(),
    })
    .optional(),
});
export type ScriptStep = z.infer<typeof ScriptStep>;

export const Script = z.array(ScriptStep);
export type Script = z.infer<typeof Script>;

/** What a model without a step left says, so that a thread can go on past the end of its script. */
export const CLOSING_STEP: ScriptStep = { text: "The script has ended. I have nothing more to do." };

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

export async function resolveScript(provider: string, source: ScriptSource): Promise<Script> {
  if (source.script !== undefined) return parseScript(source.script, `provider ${provider}: script`);
  if (source.scriptFile === undefined) {
    throw new HeddleError("config.invalid", `provider ${provider}: give it a script or a scriptFile`);
  }
  const where = source.scriptFile;
  return parseScript(await readScriptFile(where), where);
}

/** Strict: a misspelt field is an error that names the step (counted from 1) and the field. */
export function parseScript(value: unknown, where: string): Script {
  const parsed = Script.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const [index, ...path] = issue?.path ?? [];
  const step = typeof index === "number" ? `step ${index + 1}` : "the whole";
  const field = path.length === 0 ? "" : `, ${path.join(".")}`;
  throw new HeddleError("config.invalid", `${where}: ${step}${field}: ${issue?.message ?? "not a script"}`, {
    details: typeof index === "number" ? { step: index + 1 } : {},
  });
}

async function readScriptFile(path: string): Promise<unknown> {
  let source: string;
  try {
    source = await readFile(path, "utf8");
  } catch (cause) {
    throw new HeddleError("config.invalid", `the script ${path} cannot be read`, { cause });
  }
  try {
    return JSON.parse(source);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new HeddleError("config.invalid", `the script ${path} is not JSON: ${why}`, { cause });
  }
}
