import { statSync } from "node:fs";
import { dirname, join } from "node:path";

/** Its top folder; undefined outside any. As for git, an empty or broken `.git` is not a repository. */
export function repositoryRoot(folder: string): string | undefined {
  for (let top = folder; ; top = dirname(top)) {
    if (isRepository(join(top, ".git"))) return top;
    if (dirname(top) === top) return undefined;
  }
}

/** From a folder up to the top of its repository; the folder alone when it is in none. */
export function foldersFromRoot(folder: string): string[] {
  const root = repositoryRoot(folder);
  const folders = [folder];
  for (let top = folder; root !== undefined && top !== root;) {
    top = dirname(top);
    folders.push(top);
  }
  return folders;
}

/** In a worktree and in a submodule `.git` is a file. */
function isRepository(dotGit: string): boolean {
  return isFile(join(dotGit, "HEAD")) || isFile(dotGit);
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false;
  }
}
