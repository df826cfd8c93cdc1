/**
 * Folders that are needed for the time of one act, in `<home>/room-scratch`. Their names say which process made them, so that
 * what a killed one left is found and removed without a clock, and what a living one needs is left alone.
 */
import { mkdir, mkdtemp, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { stateOf, thisHolder } from "@heddle/agent";
import { removeTree } from "../tree/remove-tree.ts";

export interface Scratch extends AsyncDisposable {
  readonly folder: string;
}

/** `kind`: for who looks there; letters. */
export async function openScratch(home: string, kind: string): Promise<Scratch> {
  const { host = "", pid, startTicks, bootId, pidNamespace } = thisHolder();
  await mkdir(scratchRoot(home), { recursive: true, mode: 0o700 });
  const name = [kind, pid, startTicks, bootId, pidNamespace, host, ""].join(".");
  const folder = await mkdtemp(join(scratchRoot(home), name));
  return {
    folder,
    async [Symbol.asyncDispose]() {
      await removeTree(folder, new AbortController().signal);
    },
  };
}

/** Of a process that cannot be seen from here, in another container. No act takes so long. */
const UNSEEN_MS = 7 * 24 * 3_600_000;

/** Removes what processes left that are gone. */
export async function sweepScratch(home: string, signal: AbortSignal): Promise<void> {
  const names: readonly string[] = await readdir(scratchRoot(home)).catch(() => []);
  for (const name of names) {
    const path = join(scratchRoot(home), name);
    if (await isLeft(name, path)) await removeTree(path, signal);
  }
}

async function isLeft(name: string, path: string): Promise<boolean> {
  const [, pid = "", startTicks = "", bootId = "", pidNamespace = "", host = "", random] = name.split(".");
  // Older names do not say the host.
  const holder = { pid: Number(pid), startTicks, bootId, pidNamespace };
  const state = stateOf(random === undefined ? holder : { host, ...holder });
  if (state !== "unknown") return state === "dead";
  const made = await stat(path).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > UNSEEN_MS;
}

function scratchRoot(home: string): string {
  return join(home, "room-scratch");
}
