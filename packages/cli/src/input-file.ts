/** Reads a file that an option names, whole and within a limit; errors name the option. */
import { readFile, stat } from "node:fs/promises";
import { HeddleError, hostFaultOr, jsonProblem, reasonOf } from "@heddle/protocol";
import { usage, type ParsedArgs } from "./args.ts";
import path from "node:path";

export async function readInputFile(file: string, flag: string, maxBytes: number): Promise<Buffer> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw usage(`${flag} ${file} does not exist`);
  if (!found.isFile()) throw usage(`${flag} ${file} is not a file`);
  if (found.size > maxBytes) throw usage(`${flag} ${file} is over ${maxBytes / 1024 / 1024} MiB`);
  try {
    return await readFile(file);
  } catch (error) {
    const why = reasonOf(error);
    throw new HeddleError(hostFaultOr(error, "usage.invalid"), `${flag} ${file} cannot be read: ${why}`, {
      cause: error,
    });
  }
}

const MAX_PROMPT_BYTES = 8 * 1024 * 1024;
/** It is copied into every result. */
const MAX_MANIFEST_BYTES = 1024 * 1024;

/** The prompt of `--prompt-file`, instead of that of the command line. */
export async function promptFromFile(
  args: ParsedArgs,
  cwd: string,
  prompt: readonly string[],
): Promise<readonly string[]> {
  const given = args.value("prompt-file");
  if (given === undefined) return prompt;
  if (prompt.length > 0) throw usage("--prompt-file is given and a prompt as well; give one of them");
  const file = path.resolve(cwd, given);
  const bytes = await readInputFile(file, "--prompt-file", MAX_PROMPT_BYTES);
  try {
    return [new TextDecoder("utf-8", { fatal: true }).decode(bytes)];
  } catch (error) {
    throw new HeddleError("prompt.binary", `--prompt-file ${file} is not UTF-8 text`, { cause: error });
  }
}

export async function readManifest(file: string): Promise<unknown> {
  const bytes = await readInputFile(file, "--manifest", MAX_MANIFEST_BYTES);
  const text = bytes.toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    throw usage(`--manifest ${file} is not JSON: ${jsonProblem(text)}`);
  }
}
