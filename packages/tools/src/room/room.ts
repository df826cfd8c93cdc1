/** What a room is asked for and what it gives; how it is made is in overlay-room.ts and copy-room.ts. */
import { chmodSync, existsSync, lutimesSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { relative } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { isBelow, isWithin } from "../sandbox/mountinfo.ts";
import { toRaw, type RawPath } from "../sandbox/raw-path.ts";
import type { Sandbox, SandboxPolicy } from "../sandbox/sandbox.ts";
import type { Scratch } from "../sandbox/scratch.ts";
import { findLayer, putLayer, type LayerFound, type RoomLayer } from "./layer.ts";

export interface RoomOptions {
  /** `workspace` is where the room appears. Nothing else can be written, whatever its write roots say. */
  readonly policy: SandboxPolicy;
  /** Trees that are shown and never changed, the uppermost first; the last is the base. */
  readonly lower: readonly string[];
  /** Put over them; reads of its entries are known. */
  readonly layer: RoomLayer;
  /** An empty folder: what is written in the room stays there, and it can be a lower tree of later rooms. */
  readonly keepUpper?: string;
  /** `overlay` refuses where `auto` takes a copy. */
  readonly kind?: "auto" | "overlay" | "copy";
  /** What can be written in memory, the layer included. Given, the upper layer is in memory however large the layer is. */
  readonly maxBytes?: number;
  /** Where the room keeps its private files. Default: the system's folder for temporary files, and memory. */
  readonly tmpDir?: string;
  /** The owner chose danger-full-access: where the host gives no sandbox, a copy without one. */
  readonly mayBeUnconfined?: boolean;
}

export interface Room extends AsyncDisposable {
  /** No guard, no sweeps: nothing in a room reaches anybody. */
  readonly sandbox: Sandbox;
  readonly kind: "overlay" | "copy" | "none";
  /** Where commands find the tree: the workspace, unless the kind is `none`. */
  readonly root: string;
  /** Leads to the tree from outside, until the room is closed. */
  readonly tree: string;
  /**
   * Entries of the layer that were read, run, followed or touched since the room was opened, or since the last call; to be
   * asked when no command runs. One that is gone is in every answer from then on, because it may be there under another
   * name. undefined: not known.
   */
  reads(): Promise<ReadonlySet<RawPath> | undefined>;
  /** Left to be written. */
  freeBytes(): Promise<number>;
}

const PERMISSIONS = 0o7777;

/** Layers are read through the room alone. What is masked in the workspace is not in the room, so it needs no cover. */
export function roomPolicy({ policy, lower, layer, keepUpper }: RoomOptions, scratch: Scratch): SandboxPolicy {
  const { workspace } = policy;
  const own = [...scratch.folders, ...lower, layer.folder, ...(keepUpper === undefined ? [] : [keepUpper])];
  const masked = [...policy.masked, ...own].filter((path) => !isWithin(path, workspace));
  return { ...policy, writeRoots: [workspace], masked };
}

/** What is put over the lower trees: the layer, without what is masked. */
export async function roomLayer({ layer, policy }: RoomOptions): Promise<LayerFound> {
  return await findLayer(withoutMasked(layer, policy));
}

/** Over the lower trees that are at `at` already. The room's own folder gets the mode and the time of the uppermost one. */
export async function fillRoom(at: RawPath, layer: LayerFound, lower: readonly string[]): Promise<void> {
  await withSpace(() => putLayer(at, layer));
  const [uppermost] = lower;
  if (uppermost === undefined) return;
  const { mode, mtimeMs } = statSync(uppermost);
  const root = Buffer.from(`${at}/.`, "latin1");
  chmodSync(root, mode & PERMISSIONS);
  lutimesSync(root, 0, mtimeMs / 1000);
}

async function withSpace(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT")))
      throw error;
    const message = "the room is full before its first command: the changes take more space than it has";
    throw new HeddleError("limit.reached", message, { cause: error });
  }
}

function withoutMasked(layer: RoomLayer, { masked, workspace }: SandboxPolicy): RoomLayer {
  const hidden = masked.filter((path) => isBelow(path, workspace)).map((path) => toRaw(relative(workspace, path)));
  if (hidden.length === 0) return layer;
  const paths = layer.paths.filter((path) => !hidden.some((place) => isWithin(path, place)));
  return { ...layer, paths, removed: [...layer.removed, ...hidden] };
}

/** Beside a kept folder that is a whole tree, not what was written over others: those below it do not show through. */
export function wholeMark(folder: string): string {
  return `${folder}.whole`;
}

export function shownLower(lower: readonly string[]): readonly string[] {
  const whole = lower.findIndex((folder) => existsSync(wholeMark(folder)));
  return whole < 0 ? lower : lower.slice(0, whole + 1);
}

export async function bytesFree(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
