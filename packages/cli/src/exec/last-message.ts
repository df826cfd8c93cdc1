/**
 * The file of `-o`: held from before the turn, and written in any case, for the text of an earlier run must not pass for
 * this one's. An agent can neither plant a link for it to be written through nor lead it elsewhere.
 */
import path from "node:path";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { holdFile, type HeldFile } from "@heddle/tools/held-file";
import { usage } from "../args.ts";
import { asFailure } from "../batch/artifacts.ts";

/** Refuses what can be seen beforehand. Nothing is created yet. */
export function holdLastMessage(file: string, cwd: string, roots: readonly string[]): HeldFile {
  const full = path.resolve(cwd, file);
  try {
    return holdFile(full, { roots });
  } catch (error) {
    if (isHeddleError(error)) throw new HeddleError(error.code, `-o ${full}: ${error.message}`, { cause: error });
    throw usage(`-o ${full} ${problem(error, full)}`);
  }
}

export async function writeLastMessage(file: HeldFile, text: string): Promise<void> {
  try {
    await file.write(text);
  } catch (error) {
    const { code, message } = asFailure(error, `-o ${file.path}`);
    const isSaid = message.startsWith("-o ");
    throw new HeddleError(code, isSaid ? message : `-o ${file.path} could not be written: ${message}`, {
      cause: error,
    });
  }
}

function problem(error: unknown, full: string): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EISDIR") return "is a folder; name a file";
  if (code === "ENOENT") return `cannot be written: ${path.dirname(full)} does not exist`;
  if (code === "EACCES" || code === "EROFS") return `cannot be written: no right to write ${path.dirname(full)}`;
  return `cannot be written: ${error instanceof Error ? error.message : String(error)}`;
}
