/**
 * Where turns may work. An owner names any folder; others one at or below the folder that the server was started in: an
 * agent writes there, and a user who could choose any folder would have the rights of the owner.
 */
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";
import { scopeAllows, type Principal } from "./principals.ts";

export interface FolderRequest {
  readonly principal: Principal | undefined;
  /** Absent: that of the server. */
  readonly wanted: string | undefined;
  /** Of the server. */
  readonly cwd: string;
}

export async function folderFor({ principal, wanted, cwd }: FolderRequest): Promise<string> {
  const folder = await realFolder(path.resolve(cwd, wanted ?? "."));
  if (principal !== undefined && scopeAllows(principal.role, "admin")) return folder;
  const root = await realFolder(cwd);
  // The whole machine is no folder to work in.
  if (root !== path.sep && (folder === root || folder.startsWith(`${root}${path.sep}`))) return folder;
  throw new HeddleError("door.forbidden", `only an owner chooses a folder outside of ${root}`);
}

/** Without links. */
export async function realFolder(folder: string): Promise<string> {
  let isFolder: boolean;
  try {
    isFolder = (await stat(folder)).isDirectory();
  } catch (cause) {
    throw new HeddleError("workspace.missing", `${folder} does not exist; make it or name another folder`, { cause });
  }
  if (!isFolder) throw new HeddleError("workspace.missing", `${folder} is not a folder`);
  return realpath(folder);
}
