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
  /** Of the whole journal: only events of these types, and only of these threads and tasks. */
  readonly types?: ReadonlySet<string> | undefined;
  readonly streams?: ReadonlySet<string> | undefined;
}

/** Followers with the same key are sent the same. */
export function keyOf({ stream, only, types, streams }: Followed): string {
  if (stream !== undefined) return stream;
  const sorted = [types, streams].map((names) => (names === undefined ? null : [...names].toSorted()));
  return JSON.stringify([only ?? null, ...sorted]);
}

function isFollowed(
  { only, types, streams }: Followed,
  { stream, type }: { readonly stream: string; readonly type: string },
): boolean {
  if (only === "tasks" && !isTaskStream(stream)) return false;
  return (types?.has(type) ?? true) && (streams?.has(stream) ?? true);
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
export function storedFrame(event: StoredEvent, of: Followed): Frame & { readonly cursor: number } {
  const cursor = of.stream === undefined ? event.position : event.version;
  // What clients do outside threads is shown to nobody; such an event only moves the cursor.
  const isLeftOut = event.stream === HOST_STREAM || !isFollowed(of, { stream: event.stream, type: event.body.type });
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
