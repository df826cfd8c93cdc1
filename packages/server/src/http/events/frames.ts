/**
 * Events as they go over the wire. A stored event carries an id, the cursor to continue from; everything else has a name
 * and no id, so that it never moves the cursor of a client.
 */
import type { ItemDelta, StoredEvent } from "@heddle/protocol";
import { isTaskStream, streamedEvent } from "@heddle/protocol/http";
import { HOST_STREAM } from "../../host/client-acts.ts";

/** What a client follows. */
export interface Followed {
  /** A thread or a task; undefined: the whole journal. */
  readonly stream: string | undefined;
  readonly only?: "tasks" | undefined;
}

export interface Frame {
  /** undefined: live only. */
  readonly cursor: number | undefined;
  /** As a server-sent event. */
  readonly bytes: Buffer;
  /** As a WebSocket message; undefined: nothing is sent. */
  readonly text: string | undefined;
}

/** In the stream of one thread the cursor is the thread's `seq`, in that of the whole journal its `position`. */
export function storedFrame(event: StoredEvent, { stream, only }: Followed): Frame & { readonly cursor: number } {
  const cursor = stream === undefined ? event.position : event.version;
  // What clients do outside threads is shown to nobody; such an event only moves the cursor.
  const isLeftOut = event.stream === HOST_STREAM || (only === "tasks" && !isTaskStream(event.stream));
  if (isLeftOut) return { cursor, bytes: Buffer.alloc(0), text: undefined };
  const data = JSON.stringify(streamedEvent(event));
  return { cursor, bytes: Buffer.from(`id: ${cursor}\ndata: ${data}\n\n`), text: `{"id":${cursor},"data":${data}}` };
}

export function deltaFrame(delta: ItemDelta): Frame {
  return namedFrame("delta", delta);
}

export function namedFrame(event: "delta" | "caughtUp" | "lagged" | "end", value: unknown): Frame {
  const data = JSON.stringify(value);
  const bytes = Buffer.from(`event: ${event}\ndata: ${data}\n\n`);
  return { cursor: undefined, bytes, text: `{"event":"${event}","data":${data}}` };
}
