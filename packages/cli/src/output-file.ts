/**
 * A file that an option names for Heddle to write, held from before any agent runs; errors name
 * the option's name. Links are followed where the user put them: not below the folder a relative path starts from, not in
 * what agents of this run may write, and not in a workspace of any thread of the record.
 */
import path from "node:path";
import { HeddleError, isHeddleError, reasonOf } from "@heddle/protocol";
import { holdFile, type HeldFile } from "@heddle/tools/held-file";
import { openRecord } from "@heddle/runtime/record";
import { usage } from "./args.ts";
import type { CommandContext } from "./command.ts";
import { asFailure } from "./batch/artifacts.ts";

export interface OutputFileOptions {
  /** Where agents of this run may write. */
  readonly roots: readonly string[];
  /** Of a new file; an ordinary one's when absent. */
  readonly mode?: number;
}

/** Refuses what can be seen beforehand. Nothing is created yet. */
export async function holdOutputFile(
  [flag, file]: readonly [flag: string, file: string],
  { cwd, env }: Pick<CommandContext, "cwd" | "env">,
  { roots, mode }: OutputFileOptions,
): Promise<HeldFile> {
  const full = path.resolve(cwd, file);
  const hold = (more: readonly string[]): HeldFile =>
    holdFile(full, { roots: [...roots, ...startOf(file, cwd), ...more], ...(mode === undefined ? {} : { mode }) });
  try {
    const held = hold([]);
    const worked = held.links.length === 0 ? [] : await workspacesAbove(held.links, env);
    if (worked.length === 0) return held;
    held[Symbol.dispose]();
    return hold(worked);
  } catch (error) {
    if (isHeddleError(error)) throw new HeddleError(error.code, `${flag} ${full}: ${error.message}`, { cause: error });
    throw usage(`${flag} ${full} ${problem(error, full)}`);
  }
}

/** A relative path means a file below the folder it starts from. */
function startOf(file: string, cwd: string): readonly string[] {
  if (path.isAbsolute(file)) return [];
  const climbs = path
    .normalize(file)
    .split(path.sep)
    .filter((part) => part === "..");
  return [path.resolve(cwd, ...climbs)];
}

/** Folders above these links that some thread has worked in: its agent may have made the link. */
async function workspacesAbove(links: readonly string[], env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  await using journal = await openRecord(env);
  if (journal === undefined) return [];
  const found: string[] = [];
  for (const folder of new Set(links.flatMap(foldersAbove))) {
    const threads = await journal.threads.list({ workspace: folder, limit: 1 });
    if (threads.length > 0) found.push(folder);
  }
  return found;
}

function foldersAbove(file: string): readonly string[] {
  const above = path.dirname(file);
  return above === file ? [] : [above, ...foldersAbove(above)];
}

function problem(error: unknown, full: string): string {
  const { code, message } = Object(error);
  if (code === "EISDIR") return "is a folder; name a file";
  if (code === "ENOENT") return `cannot be written: ${path.dirname(full)} does not exist`;
  if (code === "ENOTDIR") return `cannot be written: ${path.dirname(full)} is not a folder`;
  if (code === "EACCES" && String(message).startsWith("no permission")) return `cannot be written: ${message}`;
  if (code === "EACCES" || code === "EROFS") return `cannot be written: no permission to write ${path.dirname(full)}`;
  return `cannot be written: ${reasonOf(error)}`;
}

/**
 * The file of `-o`: held from before the turn, and written in any case, for the text of an earlier run must not pass for
 * this one's. An agent can neither plant a link for it to be written through nor lead it elsewhere.
 */
export async function writeLastMessage(file: HeldFile, text: string): Promise<void> {
  try {
    await file.write(text);
  } catch (error) {
    const { code, message } = asFailure(error, `-o ${file.path}`);
    const isReported = message.startsWith("-o ");
    throw new HeddleError(code, isReported ? message : `-o ${file.path} could not be written: ${message}`, {
      cause: error,
    });
  }
}
