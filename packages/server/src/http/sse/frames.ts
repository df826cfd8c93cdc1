/**
 * Events as server-sent events. A stored event is a plain message whose id is the cursor to go on from; everything else
 * has a name of its own and no id, so that it never moves the cursor of whoever listens.
 */
import type { ItemDelta, StoredEvent } from "@heddle/protocol";
import { isTaskStream, streamedEvent } from "@heddle/protocol/http";
import { HOST_STREAM } from "../../host/host-stream.ts";

/** What a client follows. */
export interface Followed {
  /** A thread or a task; undefined: all there is. */
  readonly stream: string | undefined;
  readonly only?: "tasks" | undefined;
}

export interface Frame {
  /** undefined: live only. */
  readonly cursor: number | undefined;
  readonly bytes: Buffer;
}

/** What clients do in no thread is nobody's to follow; the rest as it was asked for. */
export function isLeftOut({ stream }: StoredEvent, { only }: Followed): boolean {
  return stream === HOST_STREAM || (only === "tasks" && !isTaskStream(stream));
}

/** In the stream of one thread the cursor is the thread's `seq`, in that of all threads the journal's `position`. */
export function storedFrame(event: StoredEvent, of: Followed): Frame & { readonly cursor: number } {
  const cursor = of.stream === undefined ? event.position : event.version;
  // It moves the cursor and says nothing.
  if (isLeftOut(event, of)) return { cursor, bytes: NOTHING };
  return { cursor, bytes: Buffer.from(`id: ${cursor}\ndata: ${JSON.stringify(streamedEvent(event))}\n\n`) };
}

export function deltaFrame(delta: ItemDelta): Frame {
  return { cursor: undefined, bytes: named("delta", delta) };
}

export function named(event: "delta" | "caughtUp" | "lagged" | "end", data: unknown): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

const NOTHING = Buffer.alloc(0);
export const HEARTBEAT = Buffer.from(":\n\n");
/** Whoever is cut off comes back after a second. */
export const OPENING = Buffer.from("retry: 1000\n\n");
