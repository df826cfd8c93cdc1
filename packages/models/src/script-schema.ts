/** Reads and checks scripts. Strict: a misspelt field is an error that names the step (counted from 1) and the field. */
import { readFile } from "node:fs/promises";
import { HeddleError, hostFaultOr, PLAIN, reasonOf, Usage } from "@heddle/protocol";
import { z } from "zod";
import { FAIL_CODES, type Script } from "./script.ts";

const MAX_DELAY_MS = 600_000;

const ScriptSchema = z.array(
  z.strictObject({
    reasoning: z.string().optional(),
    text: z.string().optional(),
    calls: z
      .array(
        z.strictObject({
          tool: z.string().min(1),
          args: z.union([z.string(), z.record(z.string(), z.unknown())]),
          id: z.string().min(1).optional(),
        }),
      )
      .optional(),
    usage: z.strictObject(Usage.partial().shape).optional(),
    delayMs: z.number().int().nonnegative().max(MAX_DELAY_MS).optional(),
    fail: z
      .strictObject({
        code: z.enum(FAIL_CODES),
        message: z.string().optional(),
        times: z.number().int().positive().optional(),
      })
      .optional(),
  }),
);

export function parseScript(value: unknown, where: string): Script {
  const parsed = ScriptSchema.safeParse(value, PLAIN);
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
    throw new HeddleError("config.invalid", `the script ${path} is not JSON: ${reasonOf(cause)}`, { cause });
  }
  return parseScript(value, path);
}
