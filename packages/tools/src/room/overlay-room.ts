/**
 * A room made of overlay layers: the lower trees are shown unchanged, writes go into an upper layer. That one is in
 * memory, or on disk when it is large or kept, and is reachable through the room alone.
 */
import { closeSync, constants, mkdirSync, openSync } from "node:fs";
import { freemem } from "node:os";
import { HeddleError } from "@heddle/protocol";
import { O_PATH } from "../files/own-folder.ts";
import type { RoomUpper } from "../sandbox/layout.ts";
import { openSandbox } from "../sandbox/open.ts";
import { openScratch, removeTree, type Scratch } from "../sandbox/scratch.ts";
import { ReadMarks } from "./read-marks.ts";
import { bytesFree, fillRoom, roomLayer, roomPolicy, shownLower, type Room, type RoomOptions } from "./room.ts";

/** A larger layer goes to disk. */
const MAX_LAYER_IN_MEMORY = 256 * 1024 * 1024;
/** The default is a quarter of the free memory, between these. */
const LEAST_MEMORY = 64 * 1024 * 1024;
const MOST_MEMORY = 2 * 1024 ** 3;

export interface OverlayRoomOptions extends RoomOptions {
  /** Where this host can have the upper layer; on disk always works. */
  readonly upper: RoomUpper["kind"];
  /** The probe found that this host shows reads. */
  readonly areReadsKnown: boolean;
}

export async function openOverlayRoom(options: OverlayRoomOptions): Promise<Room> {
  const lower = shownLower(options.lower);
  const layer = await roomLayer(options);
  const scratch = openScratch(options.tmpDir);
  const policy = roomPolicy(options, scratch);
  /** Keeps the merged tree open, whatever becomes of the process it was found through. */
  let held: number | undefined;
  const releaseTurn = (): void => {
    if (held !== undefined) closeSync(held);
    held = undefined;
  };
  // The number may mean another file once it is closed.
  const isOpen = (): boolean => held !== undefined;
  const onMounted = (pid: number): void => {
    releaseTurn();
    held = openSync(`/proc/${pid}/root${policy.workspace}`, O_PATH | constants.O_DIRECTORY);
  };
  const upper = await upperFor({ ...options, layerBytes: layer.bytes }, scratch);
  const sandbox = await openSandbox(policy, {
    backend: "namespaces",
    room: { tree: { kind: "overlay", lower, upper }, scratch, onMounted },
  });
  const close = async (): Promise<void> => {
    await sandbox.close();
    releaseTurn();
    if (options.keepUpper !== undefined) await removeTree(workOf(options.keepUpper));
  };
  try {
    const { systemCalls } = await sandbox.ready;
    if (held === undefined) throw new HeddleError("sandbox.failed", "the room cannot be seen from outside");
    const at = `/proc/self/fd/${held}`;
    await fillRoom(at, layer, lower);
    // Without the filter there are reads that leave no trace.
    const areReadsKnown = options.areReadsKnown && systemCalls === "filtered";
    const marks = areReadsKnown ? await ReadMarks.make(at, options.layer.paths) : undefined;
    return {
      sandbox,
      kind: "overlay",
      root: policy.workspace,
      tree: at,
      reads: async () => (isOpen() ? await marks?.take() : undefined),
      freeBytes: async () => (isOpen() ? await bytesFree(at) : 0),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

interface UpperOptions extends OverlayRoomOptions {
  readonly layerBytes: number;
}

async function upperFor(options: UpperOptions, scratch: Scratch): Promise<RoomUpper> {
  try {
    return await planUpper(options, scratch);
  } catch (error) {
    await scratch[Symbol.asyncDispose]();
    throw error;
  }
}

async function planUpper(
  { keepUpper, layerBytes, maxBytes, upper: where }: UpperOptions,
  scratch: Scratch,
): Promise<RoomUpper> {
  if (keepUpper !== undefined) {
    const work = workOf(keepUpper);
    // Left by a process that was killed.
    await removeTree(work);
    mkdirSync(work, { mode: 0o700 });
    return { kind: "disk", upper: keepUpper, work };
  }
  if (where === "memory") {
    const most = maxBytes ?? Math.max(LEAST_MEMORY, Math.min(MOST_MEMORY, Math.floor(freemem() / 4)));
    const fits = layerBytes <= MAX_LAYER_IN_MEMORY && layerBytes <= most / 2;
    if (fits || maxBytes !== undefined) return { kind: "memory", maxBytes: most };
  }
  const [upper, work] = [`${scratch.room}/upper`, `${scratch.room}/work`];
  for (const folder of [upper, work]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  return { kind: "disk", upper, work };
}

/** The kernel prepares files here before it moves them into the upper layer. */
function workOf(keepUpper: string): string {
  return `${keepUpper}.work`;
}
