/** Reads and checks scripts. Strict: a misspelt field is an error that names the step (counted from 1) and the field. */
import { readFile } from "node:fs/promises";
import { HeddleError, hostFaultOr, jsonProblem, PLAIN, reasonOf, Usage } from "@heddle/protocol";
import { z } from "zod";

const MAX_DELAY_MS = 600_000;

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

const ScriptCall = z.strictObject({
  tool: z.string().min(1),
  /** An object for a JSON tool; a string is sent as it is, for a freeform tool or as broken JSON. */
  args: z.union([z.string(), z.record(z.string(), z.unknown())]),
  id: z.string().min(1).optional(),
});

const ScriptStep = z.strictObject({
  reasoning: z.string().optional(),
  text: z.string().optional(),
  calls: z.array(ScriptCall).readonly().optional(),
  usage: z.strictObject(Usage.partial().shape).optional(),
  /** Pause before the answer. */
  delayMs: z.number().int().nonnegative().max(MAX_DELAY_MS).optional(),
  fail: z
    .strictObject({
      code: z.enum(FAIL_CODES),
      message: z.string().optional(),
      /** How many attempts fail before the step is played; all of them when absent. */
      times: z.number().int().positive().optional(),
    })
    .optional(),
});
const ScriptSteps = z.array(ScriptStep).readonly();

export type ScriptCall = Readonly<z.infer<typeof ScriptCall>>;
export type ScriptStep = Readonly<z.infer<typeof ScriptStep>>;
export type Script = readonly ScriptStep[];

export function parseScript(value: unknown, where: string): Script {
  const parsed = ScriptSteps.safeParse(value, PLAIN);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const [index, ...path] = issue?.path ?? [];
  const step = typeof index === "number" ? `step ${index + 1}` : "the whole";
  const field = path.length === 0 ? "" : `, ${path.join(".")}`;
  throw new HeddleError("config.invalid", `${where}: ${step}${field}: ${issue?.message ?? "not a script"}`, {
    details: typeof index === "number" ? { step: index + 1 } : {},
  });
}

export async function readScriptFile(path: string): Promise<Script> {
  let source: string;
  try {
    source = await readFile(path, "utf8");
  } catch (cause) {
    const message = `the script ${path} cannot be read: ${reasonOf(cause)}`;
    throw new HeddleError(hostFaultOr(cause, "config.invalid"), message, { cause });
  }
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch (cause) {
    throw new HeddleError("config.invalid", `the script ${path} is not JSON: ${jsonProblem(source)}`, { cause });
  }
  return parseScript(value, path);
}
