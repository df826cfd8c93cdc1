/** The folders that tasks may work in; any when none is configured. */
import { realpathSync } from "node:fs";
import path from "node:path";
import { HeddleError } from "@heddle/protocol";

/** Links are followed on both sides; `/root-evil` is not inside `/root`. Throws `policy.denied`. */
export function requireAllowedWorkspace(workspace: string, roots: readonly string[] | undefined): void {
  if (roots === undefined) return;
  const real = realOf(workspace);
  if (roots.some((root) => isInside(real, realOf(root)))) return;
  throw new HeddleError(
    "policy.denied",
    `${workspace} is outside the folders that tasks may work in; [tasks] workspace_roots in config.toml names ${roots.join(", ") || "none"}`,
  );
}

function realOf(folder: string): string {
  try {
    return realpathSync.native(folder);
  } catch {
    return path.resolve(folder);
  }
}

function isInside(folder: string, root: string): boolean {
  const relative = path.relative(root, folder);
  return relative === "" || (!relative.startsWith(`..${path.sep}`) && relative !== ".." && !path.isAbsolute(relative));
}
