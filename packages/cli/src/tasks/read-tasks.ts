/** Task files as commands take them: with the defaults of the configuration, and inside the folders it allows. */
import { existsSync } from "node:fs";
import path from "node:path";
import { buffer } from "node:stream/consumers";
import { HeddleError } from "@heddle/protocol";
import {
  openLoomSettings,
  parseDuration,
  readSpec,
  readSpecFiles,
  requireAllowedWorkspace,
  type FoundSpecs,
  type SpecOptions,
} from "@heddle/tasks";
import type { ConfigFile } from "@heddle/runtime/config";
import type { CommandContext } from "../command.ts";
import { say } from "../print/screen.ts";

/** What `heddle task init` writes, and what `heddle watch` looks for where nothing is named; then OpenLoom's own. */
export const DEFAULT_FILE = "heddle-task.yaml";
const FALLBACKS = [DEFAULT_FILE, "openloom.yaml"] as const;

/** `-` is standard input. Throws SpecError with all that is wrong. */
export async function readTasks(
  file: string,
  config: ConfigFile,
  { env, cwd }: Pick<CommandContext, "env" | "cwd">,
): Promise<FoundSpecs> {
  const { defaults, warnings } = openLoomSettings(env);
  const minEveryMs = parseDuration(config.tasks?.min_interval ?? "");
  const options: SpecOptions = { defaults, ...(minEveryMs === undefined ? {} : { minEveryMs }) };
  const read =
    file === "-" ? await readStdin(cwd, options) : await readSpecFiles(path.resolve(cwd, file), { ...options, cwd });
  for (const { spec } of read.found) requireAllowedWorkspace(spec.workspace, config.tasks?.workspace_roots);
  return { ...read, warnings: [...warnings, ...read.warnings] };
}

/** The file of this folder that a command without a word means. */
export function fileHere(cwd: string): string | undefined {
  return FALLBACKS.find((name) => existsSync(path.join(cwd, name)));
}

async function readStdin(cwd: string, options: SpecOptions): Promise<FoundSpecs> {
  if (process.stdin.isTTY)
    throw new HeddleError("usage.invalid", "nothing is piped in; write heddle task add - < FILE");
  const text = await buffer(process.stdin);
  const { specs, warnings } = readSpec({ file: "standard input", text, folder: cwd }, options);
  return { found: specs.map((spec) => ({ file: "-", spec })), warnings };
}

export function warn(warnings: readonly string[]): void {
  for (const line of warnings) say(line);
}
