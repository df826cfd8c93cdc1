/** The folder a turn works in: it exists, and it is one the owner can get back from history, unless told otherwise. */
import { accessSync, constants, realpathSync, statSync, type Stats } from "node:fs";
import path from "node:path";
import { repositoryRoot } from "@heddle/agent";
import { HeddleError } from "@heddle/protocol";
import type { ConfigFile } from "../config/schema.ts";

export async function openWorkspace(given: string | undefined, cwd: string): Promise<string> {
  return requireFolder(given === undefined ? cwd : path.resolve(cwd, given), given === undefined ? "" : "-C ");
}

/** The real path of an existing folder. `flag` is the option it came from, for the message. */
export async function requireFolder(folder: string, flag: string): Promise<string> {
  const found = statOf(folder);
  if (found === undefined) {
    throw new HeddleError("workspace.missing", `${flag}${folder} does not exist; make it or name another folder`);
  }
  if (!found.isDirectory()) throw new HeddleError("workspace.missing", `${flag}${folder} is not a folder`);
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
  } catch (cause) {
    const help = "run chmod u+rx on it, or name another folder";
    throw new HeddleError("workspace.missing", `${flag}${folder} cannot be read by this user; ${help}`, { cause });
  }
  return realpathSync.native(folder);
}

export interface Standing {
  /** The folder that holds the repository; undefined outside any. */
  readonly repository: string | undefined;
  /** The owner has written so into the configuration. Heddle never does. */
  readonly isTrusted: boolean;
}

export async function standingOf(workspace: string, projects: ConfigFile["projects"]): Promise<Standing> {
  const repository = repositoryRoot(workspace);
  const levels = [workspace, repository].flatMap((folder) => {
    const project = folder === undefined || projects === undefined ? undefined : ownProject(projects, folder);
    return project?.trust_level === undefined ? [] : [project.trust_level];
  });
  return { repository, isTrusted: levels[0] === "trusted" };
}

export function requireStanding(workspace: string, { repository, isTrusted }: Standing): void {
  if (repository !== undefined || isTrusted) return;
  throw new HeddleError(
    "workspace.untrusted",
    "Not inside a trusted directory and --skip-git-repo-check was not specified. " +
      `${workspace} is not inside a git repository, so changes could not be undone; run git init there, or add --skip-git-repo-check`,
  );
}

type Projects = NonNullable<ConfigFile["projects"]>;

function ownProject(projects: Projects, folder: string): Projects[string] | undefined {
  return Object.hasOwn(projects, folder) ? projects[folder] : undefined;
}

/** Not there, or behind a folder that cannot be searched. */
function statOf(folder: string): Stats | undefined {
  try {
    return statSync(folder, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
