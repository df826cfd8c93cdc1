/** The options that make `heddle exec` a batch job, and what they say. Anything out of range is refused with what to write. */
import path from "node:path";
import { uuidv7, type TurnLimits } from "@heddle/protocol";
import { usage, type OptionSpec, type ParsedArgs } from "../args.ts";
import type { HeldFile } from "@heddle/tools/held-file";
import type { CommandContext } from "../command.ts";

/** Each of these asks for the batch contract: a terminal line, and a result where one is named. */
const CONTRACT: readonly OptionSpec[] = [
  { name: "idle-timeout", value: "SECONDS", help: "Stop after this long without activity (exit code 124)" },
  { name: "max-turns", value: "N", help: "Ask the model at most N times (exit code 6)" },
  { name: "max-tokens", value: "N", help: "Use at most N tokens, in and out together (exit code 6)" },
  { name: "max-cost", value: "USD", help: "Spend at most this much; needs a known price (exit code 6)" },
  { name: "retry", value: "N", help: "Start over or resume, up to N times, after a transient failure" },
  { name: "result-json", value: "FILE", completes: "file", help: "Write how it ended to FILE, however it ends" },
  { name: "artifact-root", value: "DIR", completes: "folder", help: "Keep everything about the run in DIR/RUN_ID" },
  { name: "run-id", value: "ID", help: "Name of the run; letters, digits, dot, dash and underscore" },
  { name: "prompt-file", value: "FILE", completes: "file", help: "Read the prompt from FILE" },
  { name: "manifest", value: "FILE", completes: "file", help: "JSON of the caller, kept with the result" },
  { name: "allow-tool", value: "NAME", isMultiple: true, help: "Offer only the named tools" },
];

const ASKING: readonly OptionSpec[] = [
  { name: "describe-capabilities", help: "Print what this version can do as JSON, and run nothing" },
  { name: "preflight", help: "Check whether the run could start, and run nothing" },
];

export const BATCH_OPTIONS: readonly OptionSpec[] = [...CONTRACT, ...ASKING];

export function isBatch(args: ParsedArgs): boolean {
  return CONTRACT.some(({ name }) => args.has(name));
}

export interface BatchFlags {
  readonly idleTimeoutMs: number | undefined;
  readonly limits: TurnLimits | undefined;
  readonly retries: number;
  readonly runId: string;
  /** Absolute. */
  readonly artifactRoot: string | undefined;
  readonly manifestFile: string | undefined;
  readonly allowedTools: readonly string[];
}

const RUN_ID = /^[A-Za-z0-9._-]{1,128}$/;
const MAX_RETRIES = 20;

export function parseBatchFlags(args: ParsedArgs, cwd: string): BatchFlags {
  const file = (name: string): string | undefined => {
    const given = args.value(name);
    return given === undefined ? undefined : path.resolve(cwd, given);
  };
  const idleSeconds = number(args, "idle-timeout", "a number of seconds above 0, such as --idle-timeout 120");
  return {
    // A timer cannot wait longer than 2^31 ms.
    idleTimeoutMs: idleSeconds === undefined ? undefined : Math.min(idleSeconds * 1000, 2 ** 31 - 1),
    limits: limitsIn(args),
    retries: retriesIn(args),
    runId: runIdOf(args) ?? `run_${uuidv7()}`,
    artifactRoot: file("artifact-root"),
    manifestFile: file("manifest"),
    allowedTools: args.values("allow-tool"),
  };
}

/** The given name when it is one; what cannot name a folder cannot name a run. */
function runIdOf(args: ParsedArgs): string | undefined {
  const given = args.value("run-id");
  if (given === undefined) return undefined;
  // A name of dots alone is another folder.
  if (RUN_ID.test(given) && !/^\.+$/.test(given)) return given;
  throw usage(`--run-id "${given}" is not 1 to 128 letters, digits, dots, dashes or underscores`);
}

function limitsIn(args: ParsedArgs): TurnLimits | undefined {
  const maxRequests = whole(args, "max-turns");
  const maxTokens = whole(args, "max-tokens");
  const maxCostUsd = number(args, "max-cost", "an amount in dollars above 0, such as --max-cost 2.50");
  if (maxRequests === undefined && maxTokens === undefined && maxCostUsd === undefined) return undefined;
  return {
    ...(maxRequests === undefined ? {} : { maxRequests }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxCostUsd === undefined ? {} : { maxCostUsd }),
  };
}

function retriesIn(args: ParsedArgs): number {
  const text = args.value("retry");
  if (text === undefined) return 0;
  const retries = Number(text);
  if (Number.isInteger(retries) && retries >= 0 && retries <= MAX_RETRIES && /^\d+$/.test(text)) return retries;
  throw usage(`--retry "${text}" is not a whole number from 0 to ${MAX_RETRIES}`);
}

function whole(args: ParsedArgs, name: string): number | undefined {
  const text = args.value(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value > 0) return value;
  throw usage(`--${name} "${text}" is not a whole number above 0`);
}

function number(args: ParsedArgs, name: string, wanted: string): number | undefined {
  const text = args.value(name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d*\.?\d+$/.test(text) && Number.isFinite(value) && value > 0) return value;
  throw usage(`--${name} "${text}" is not ${wanted}`);
}

/** As far as the command line says: where agents may write. */
export function rootsOf(args: ParsedArgs, cwd: string): readonly string[] {
  return [args.value("cd") ?? ".", ...args.values("add-dir")].map((folder) => path.resolve(cwd, folder));
}

export async function holdResultFile(
  args: ParsedArgs,
  context: Pick<CommandContext, "cwd" | "env">,
  roots: readonly string[],
): Promise<HeldFile | undefined> {
  const file = args.value("result-json");
  if (file === undefined) return undefined;
  const { holdOutputFile } = await import("../output-file.ts");
  return await holdOutputFile(["--result-json", file], context, { roots, mode: 0o600 });
}
