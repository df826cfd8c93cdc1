/** The folders of a policy, checked before anything is opened. */
import { HeddleError } from "@heddle/protocol";
import { requireOwnFolder } from "../files/own-folder.ts";
import { isBelow, isWithin } from "./mountinfo.ts";
import type { SandboxPolicy } from "./sandbox.ts";

const KERNEL_FOLDERS = ["/proc", "/sys", "/dev"] as const;

/** Throws `workspace.missing` for a folder that does not exist, `workspace.moved` for one behind a link. */
export function checkedRoots({
  workspace,
  writeRoots,
}: SandboxPolicy): Pick<SandboxPolicy, "workspace" | "writeRoots"> {
  for (const root of [workspace, ...writeRoots]) requireOwnFolder(root);
  return { workspace, writeRoots: outermost(writeRoots) };
}

/** Refused first: walking a whole disk for protected paths would take minutes. */
export function checkWriteRoots(roots: readonly string[]): void {
  for (const root of roots) {
    const isKernelFolder = KERNEL_FOLDERS.some((folder) => isWithin(root, folder)) && !isBelow(root, "/dev/shm");
    if (root !== "/" && !isKernelFolder) continue;
    throw new HeddleError(
      "usage.invalid",
      `${root} cannot be a folder a sandboxed command may write; choose a project folder, or danger-full-access`,
    );
  }
}

export function outermost(roots: readonly string[]): string[] {
  return [...new Set(roots)].filter((root) => !roots.some((other) => root !== other && root.startsWith(`${other}/`)));
}
