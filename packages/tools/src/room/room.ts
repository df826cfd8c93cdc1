/** The options and the interface of a room; overlay-room.ts and copy-room.ts implement it. */
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
  /** `workspace` is where the room appears. Nothing else is writable, whatever the write roots say. */
  readonly policy: SandboxPolicy;
  /** Read-only trees, the uppermost first; the last is the base. */
  readonly lower: readonly string[];
  /** Applied over them; reads of its entries are known. */
  readonly layer: RoomLayer;
  /** An empty folder that keeps what is written in the room; it can be a lower tree of later rooms. */
  readonly keepUpper?: string;
  /** `overlay` refuses where `auto` takes a copy. */
  readonly kind?: "auto" | "overlay" | "copy";
  /** Size of an upper layer in memory, the layer included. When set, the upper layer is always in memory. */
  readonly maxBytes?: number;
  /** Default: the system's folder for temporary files, and memory. */
  readonly tmpDir?: string;
  /** danger-full-access was chosen: where the host gives no sandbox, use a copy without one. */
  readonly mayBeUnconfined?: boolean;
}

export interface Room extends AsyncDisposable {
  /** Without guard and sweeps: nothing in a room reaches anything else. */
  readonly sandbox: Sandbox;
  readonly kind: "overlay" | "copy" | "none";
  /** Where commands find the tree: the workspace, unless the kind is `none`. */
  readonly root: string;
  /** The tree as seen from outside, until the room is closed. */
  readonly tree: string;
  /**
   * Entries of the layer that were read, run, followed or touched since the last call; call it when no command runs. A
   * removed entry is in every later result, because it may exist under another name. undefined: not known.
   */
  reads(): Promise<ReadonlySet<RawPath> | undefined>;
  /** Left to be written. */
  freeBytes(): Promise<number>;
}

const PERMISSIONS = 0o7777;

/**
 * Layers are reachable through the room alone. Masked paths of the workspace are not in the room, so they need no
 * cover.
 */
export function roomPolicy({ policy, lower, layer, keepUpper }: RoomOptions, scratch: Scratch): SandboxPolicy {
  const { workspace } = policy;
  const own = [...scratch.folders, ...lower, layer.folder, ...(keepUpper === undefined ? [] : [keepUpper])];
  const masked = [...policy.masked, ...own].filter((path) => !isWithin(path, workspace));
  return { ...policy, writeRoots: [workspace], masked };
}

export async function roomLayer({ layer, policy }: RoomOptions): Promise<LayerFound> {
  return await findLayer(withoutMasked(layer, policy));
}

/** The lower trees are at `at` already. The room's folder gets mode and time of the uppermost one. */
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
  const paths = layer.paths.filter((path) => !hidden.some((folder) => isWithin(path, folder)));
  return { ...layer, paths, removed: [...layer.removed, ...hidden] };
}

/** Marks a kept folder that is a whole tree: trees below it do not show through. */
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
