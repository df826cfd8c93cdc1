/** Which folder is meant, without links, and what in it is none of a tree's business. */
import { chmodSync, realpathSync, statSync } from "node:fs";
import { HeddleError } from "@heddle/protocol";
import { realPathOf } from "@heddle/tools/held-folder";
import { relativeTo, type RawPath } from "./manifest.ts";

export interface TreeRoot {
  readonly root: string;
  readonly skipped: ReadonlySet<RawPath>;
}

export function treeRoot(folder: string, skip: readonly string[]): TreeRoot {
  let root: string;
  try {
    root = realpathSync(folder);
    if (!statSync(root).isDirectory()) throw new Error("it is not a folder");
  } catch (cause) {
    throw new HeddleError("workspace.missing", `the workspace ${folder} does not exist`, { cause });
  }
  const skipped = new Set(relativeTo(root, [...skip, ...skip.map(realPathOf)]));
  if (skip.some((path) => realPathOf(path) === root)) {
    throw new HeddleError(
      "workspace.missing",
      `the workspace ${folder} is a folder of Heddle itself; name another one`,
    );
  }
  return { root, skipped };
}

/** An agent can close the workspace itself, to its owner too, who opens it again. Its mode is no part of the work. */
export function openToOwner(folder: string): void {
  const { mode, uid } = statSync(folder);
  if ((mode & 0o500) !== 0o500 && uid === process.getuid?.()) chmodSync(folder, (mode & 0o7777) | 0o700);
}
