/**
 * SIGINT for a command and its children, as a terminal would send it. Programs that only stand around a sandboxed command
 * are left alone: they would die at once and take the command's own way of stopping with them.
 */
import { readdir, readFile } from "node:fs/promises";

const WRAPPERS = new Set(["nsenter", "unshare", "setpriv", "bwrap"]);

export async function interruptTree(root: number): Promise<void> {
  const processes = await allProcesses();
  const tree = new Set([root]);
  // Parents may be listed after their children, so one pass is repeated until nothing is added.
  for (let size = 0; size !== tree.size;) {
    size = tree.size;
    for (const { pid, parent } of processes) if (tree.has(parent)) tree.add(pid);
  }
  for (const { pid, name } of processes) {
    if (tree.has(pid) && !WRAPPERS.has(name)) signal(pid);
  }
}

interface ProcessLine {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
}

async function allProcesses(): Promise<ProcessLine[]> {
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(names.map(readProcess));
  return lines.filter((line) => line !== undefined);
}

async function readProcess(pid: string): Promise<ProcessLine | undefined> {
  try {
    // The name stands in parentheses and may hold spaces and parentheses itself.
    const match = /^\d+ \((.*)\) \S (\d+) /s.exec(await readFile(`/proc/${pid}/stat`, "utf8"));
    return match === null ? undefined : { pid: Number(pid), parent: Number(match[2]), name: match[1] ?? "" };
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function signal(pid: number): void {
  try {
    process.kill(pid, "SIGINT");
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ESRCH" || error.code === "ENOENT");
}
