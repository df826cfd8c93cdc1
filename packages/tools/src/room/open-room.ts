/**
 * A room: a throw-away tree at the path of a workspace, in its own sandbox. What is written there reaches nothing else,
 * and closing removes it. Where the host mounts layers the tree costs nothing, and it is known which entries of the
 * layer were read; elsewhere it is a copy, and reads are not known.
 */
import { HeddleError, isHeddleError } from "@heddle/protocol";
import { openCopyRoom } from "./copy-room.ts";
import { openOverlayRoom } from "./overlay-room.ts";
import { findOverlay } from "./probe.ts";
import type { Room, RoomOptions } from "./room.ts";

export type { RoomLayer } from "./layer.ts";
export type { Room, RoomOptions } from "./room.ts";
export { findOverlay, type OverlayFound } from "./probe.ts";
export type { RawPath } from "../sandbox/raw-path.ts";

export async function openRoom(options: RoomOptions): Promise<Room> {
  const { kind = "auto" } = options;
  if (kind === "copy") return await openCopyRoom(options);
  const found = await findOverlay();
  if (found.ok) {
    try {
      return await openOverlayRoom({ ...options, ...found });
    } catch (error) {
      // Some file systems cannot be a layer. Faults of the layer itself are reported.
      if (kind === "overlay" || !isHeddleError(error) || error.code !== "sandbox.failed") throw error;
    }
  } else if (kind === "overlay") {
    throw new HeddleError("sandbox.unavailable", `this host mounts no layers for a room: ${found.reason}`);
  }
  return await openCopyRoom(options);
}
