/** The files of a workspace as checks see them, named by relative paths that cannot lead out of it. */
import { realpath, stat } from "node:fs/promises";
import { HeddleError } from "@heddle/protocol";
import type { EntryStat } from "@heddle/tools/files";

/** A document that a check reads whole. */
export const MAX_READ_BYTES = 16 * 1024 * 1024;
export const MAX_ENTRIES = 200_000;

export interface Found {
  readonly path: string;
  readonly kind: "file" | "link";
}

export interface FoundFiles {
  readonly entries: readonly Found[];
  /** There were too many entries to look at them all. */
  readonly isPartial: boolean;
}

export interface Workspace {
  readonly root: string;
  /** undefined: it does not exist. `path.outside`: a link leads out of the workspace. */
  entry(path: string): Promise<EntryStat | undefined>;
  /** undefined: it does not exist. A folder, a device or a file that is too large throws. */
  read(path: string): Promise<{ readonly text: string; readonly sha256: string } | undefined>;
  /** Files and links that a glob matches, sorted; links are not followed. */
  find(globs: readonly string[]): Promise<FoundFiles>;
  /** undefined: it does not exist. Anything but a regular file reached without links has a hash of its kind. */
  hash(path: string): Promise<string | undefined>;
}

export async function realFolder(folder: string): Promise<string> {
  const real = await realpath(folder).catch((cause: unknown) => {
    throw new HeddleError("workspace.missing", `the workspace ${folder} does not exist`, { cause });
  });
  if ((await stat(real)).isDirectory()) return real;
  throw new HeddleError("workspace.missing", `the workspace ${folder} is not a folder`);
}
