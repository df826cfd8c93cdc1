/**
 * Programs of the host that build the sandbox. They run with the capabilities of the new namespace, so they are taken
 * from system folders and never from PATH, where a workspace may have put a program of the same name.
 */
import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { reasonOf } from "@heddle/protocol";

const SYSTEM_FOLDERS = [
  "/usr/bin",
  "/bin",
  "/usr/sbin",
  "/sbin",
  "/usr/local/bin",
  "/usr/local/sbin",
  "/run/current-system/sw/bin",
] as const;

export function findHostTool(name: string): string | undefined {
  return findProgram(name, SYSTEM_FOLDERS);
}

export function findProgram(name: string, folders: readonly string[]): string | undefined {
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Runs a program of the host with an empty environment; for probing and help texts only. */
export async function runHostTool(
  file: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<{ isOk: boolean; stdout: string; stderr: string }> {
  return await new Promise((resolve) => {
    execFile(file, args, { env: { LC_ALL: "C" }, cwd: "/", timeout: timeoutMs }, (error, stdout, stderr) => {
      resolve({ isOk: error === null, stdout, stderr: stderr.trim() === "" && error ? reasonOf(error) : stderr });
    });
  });
}
