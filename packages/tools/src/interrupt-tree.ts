/**
 * SIGINT for a command and its children, as a terminal would send it. Around a sandboxed command stand programs that only
 * carry it, in outer pid namespaces or as the first process of the inner one: they would die at once and take the command's
 * own way of stopping with them, so they are left alone.
 */
import { readdir, readFile } from "node:fs/promises";

export async function interruptTree(root: number): Promise<void> {
  const tree = below(root, await allProcesses());
  const deepest = Math.max(...tree.map(({ depth }) => depth));
  const outermost = tree.find(({ pid }) => pid === root)?.depth ?? deepest;
  for (const { pid, depth, innerPid } of tree) {
    const isCarrier = depth < deepest || (deepest > outermost && innerPid === 1);
    if (!isCarrier) signal(pid);
  }
}

interface ProcessFacts {
  readonly pid: number;
  readonly parent: number;
  /** In how many nested pid namespaces it is, seen from here. */
  readonly depth: number;
  /** Its number in the innermost of them. */
  readonly innerPid: number;
}

function below(root: number, processes: readonly ProcessFacts[]): ProcessFacts[] {
  const tree = new Set([root]);
  // Parents may be listed after their children, so one pass is repeated until nothing is added.
  for (let size = 0; size !== tree.size;) {
    size = tree.size;
    for (const { pid, parent } of processes) if (tree.has(parent)) tree.add(pid);
  }
  return processes.filter(({ pid }) => tree.has(pid));
}

async function allProcesses(): Promise<ProcessFacts[]> {
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const facts = await Promise.all(names.map(readProcess));
  return facts.filter((one) => one !== undefined);
}

async function readProcess(pid: string): Promise<ProcessFacts | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    const parent = Number(/^PPid:\t(\d+)$/m.exec(status)?.[1] ?? 0);
    const pids = (/^NSpid:\t(.+)$/m.exec(status)?.[1] ?? pid).split("\t");
    return { pid: Number(pid), parent, depth: pids.length, innerPid: Number(pids.at(-1)) };
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
