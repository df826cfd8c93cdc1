/** A room that is a copy of its trees, for hosts that mount no layers. Which of its files are read is not known. */
import { mkdirSync, writeFileSync } from "node:fs";
import { isHeddleError } from "@heddle/protocol";
import { openSandbox, openUnconfined } from "../sandbox/open.ts";
import { toRaw } from "../sandbox/raw-path.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { openScratch } from "../sandbox/scratch.ts";
import { copyTree } from "./copy-tree.ts";
import {
  bytesFree,
  fillRoom,
  roomLayer,
  roomPolicy,
  shownLower,
  wholeMark,
  type Room,
  type RoomOptions,
} from "./room.ts";

interface OpenedCopy extends AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly kind: "copy" | "none";
  readonly root: string;
  /** Where the copy lies. */
  readonly source: string;
}

export async function openCopyRoom(options: RoomOptions): Promise<Room> {
  const { keepUpper } = options;
  const layer = await roomLayer(options);
  // Before anything is copied: a host without a sandbox refuses here.
  const { source, ...opened } = await openCopy(options);
  try {
    const lower = shownLower(options.lower);
    for (const folder of lower.toReversed()) await copyTree(folder, source);
    if (keepUpper !== undefined) writeFileSync(wholeMark(keepUpper), "");
    await fillRoom(toRaw(source), layer, lower);
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
  return { ...opened, tree: source, reads: async () => undefined, freeBytes: () => bytesFree(source) };
}

async function openCopy(options: RoomOptions): Promise<OpenedCopy> {
  try {
    return await openConfined(options);
  } catch (error) {
    const isRefused = isHeddleError(error) && error.code === "sandbox.unavailable";
    if (options.mayBeUnconfined !== true || !isRefused) throw error;
    return openFree(options);
  }
}

async function openConfined(options: RoomOptions): Promise<OpenedCopy> {
  const scratch = openScratch(options.tmpDir);
  const policy = roomPolicy(options, scratch);
  const source = madeFolder(options.keepUpper ?? scratch.room);
  const sandbox = await openSandbox(policy, { room: { tree: { kind: "folder", source }, scratch } });
  const close = async (): Promise<void> => void (await sandbox.close());
  await sandbox.ready.catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return { sandbox, kind: "copy", root: policy.workspace, source, [Symbol.asyncDispose]: close };
}

function openFree(options: RoomOptions): OpenedCopy {
  const scratch = openScratch(options.tmpDir);
  const source = madeFolder(options.keepUpper ?? scratch.room);
  const sandbox = openUnconfined({ ...options.policy, workspace: source, writeRoots: [source] });
  const close = (): Promise<void> => Promise.resolve(scratch[Symbol.asyncDispose]());
  return { sandbox, kind: "none", root: source, source, [Symbol.asyncDispose]: close };
}

function madeFolder(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}
