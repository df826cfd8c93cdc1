/** The folder a turn works in: it exists, and it is one the owner can get back from history, unless told otherwise. */
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";

export async function openWorkspace(given: string | undefined, cwd: string): Promise<string> {
  return requireFolder(given === undefined ? cwd : path.resolve(cwd, given), given === undefined ? "" : "-C ");
}

/** The real path of an existing folder. `flag` is the option it came from, for the message. */
export async function requireFolder(folder: string, flag: string): Promise<string> {
  const found = await stat(folder).catch(() => undefined);
  if (found === undefined) {
    throw new HeddleError("workspace.missing", `${flag}${folder} does not exist; make it or name another folder`);
  }
  if (!found.isDirectory()) throw new HeddleError("workspace.missing", `${flag}${folder} is not a folder`);
  return realpath(folder);
}

export async function requireGitRepository(workspace: string): Promise<void> {
  for (let folder = workspace; ; folder = path.dirname(folder)) {
    if ((await stat(path.join(folder, ".git")).catch(() => undefined)) !== undefined) return;
    if (folder === path.dirname(folder)) break;
  }
  throw new HeddleError(
    "workspace.untrusted",
    `${workspace} is not inside a git repository, so changes could not be undone; run git init there, or add --skip-git-repo-check`,
  );
}
