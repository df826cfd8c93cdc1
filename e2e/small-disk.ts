/**
 * A small file system that ordinary users can mount too: a tmpfs in a mount namespace of its own, kept by a process that
 * only waits. Programs are started inside with `wrapper`; the test sees the same files through the keeper's root.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { World } from "./world.ts";

const UNSHARE = ["--user", "--map-root-user", "--mount"] as const;

export const canMountSmallDisk =
  spawnSync("unshare", [...UNSHARE, "sh", "-c", "mount -t tmpfs none /mnt && exec nsenter --version"]).status === 0;

export interface SmallDisk extends AsyncDisposable {
  /** As programs inside name it. */
  readonly home: string;
  /** The same folder as this process reaches it. */
  readonly seen: string;
  /** Starts the command that follows it where the disk is. */
  readonly wrapper: readonly string[];
  /** Leaves no byte, not even those kept for the ends of turns, and takes what others give up, until `free`. */
  fill(): Promise<void>;
  free(): Promise<void>;
}

const CHUNK_BYTES = 256 * 1024;
const LOOK_MS = 5;

export async function openSmallDisk(world: World, megabytes: number): Promise<SmallDisk> {
  const folder = path.join(world.root, "disk");
  await mkdir(folder);
  const script = 'mount -t tmpfs -o size="$1" none "$2" && echo mounted && exec cat';
  const keeper = spawn("unshare", [...UNSHARE, "sh", "-c", script, "sh", `${megabytes}m`, folder], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(keeper, "close");
  await Promise.race([once(keeper.stdout, "data"), ended]);
  if (keeper.pid === undefined || keeper.exitCode !== null) throw new Error("the disk could not be mounted");
  const seen = path.join(`/proc/${keeper.pid}/root`, folder);
  const filler = path.join(seen, "filler");
  let isFull = false;
  let eating: Promise<void> = Promise.resolve();
  const enter = ["nsenter", "--user", "--mount", "--preserve-credentials", "-t", String(keeper.pid)];
  return {
    home: path.join(folder, "home"),
    seen: path.join(seen, "home"),
    wrapper: [...enter, "sh", "-c", 'cd "$0" && exec "$@"', world.workspace],
    async fill() {
      await fillUp(filler);
      await rm(path.join(seen, "home", "reserve"), { force: true });
      await fillUp(filler);
      isFull = true;
      eating = eat(filler, () => isFull);
    },
    async free() {
      isFull = false;
      await eating;
      await rm(filler, { force: true });
    },
    async [Symbol.asyncDispose]() {
      isFull = false;
      await eating;
      keeper.stdin.end();
      await ended;
    },
  };
}

async function eat(filler: string, goesOn: () => boolean): Promise<void> {
  do {
    await delay(LOOK_MS);
    await fillUp(filler);
  } while (goesOn());
}

async function fillUp(filler: string): Promise<void> {
  for (let size = CHUNK_BYTES; size >= 1; size = Math.floor(size / 16)) {
    while ((await tryWrite(filler, size)) === "written");
  }
}

async function tryWrite(file: string, bytes: number): Promise<"written" | "full"> {
  try {
    await writeFile(file, Buffer.alloc(bytes, 1), { flag: "a" });
    return "written";
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOSPC") return "full";
    throw error;
  }
}
