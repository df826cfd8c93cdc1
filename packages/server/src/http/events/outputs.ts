/** The two ways in which events reach a client: as server-sent events, or as messages of a WebSocket. */
import type { ServerResponse } from "node:http";
import type { Channel } from "../../rpc/channel.ts";
import { CAREFUL_HEADERS } from "../answer.ts";
import type { Frame } from "./frames.ts";

export interface Output {
  /** False: the client has not read what was sent before. */
  readonly hasRoom: boolean;
  /** `bytes`: the same frames as server-sent events, made once for all readers. */
  send(frames: readonly Frame[], bytes: Buffer): void;
  heartbeat(): void;
  /** Sends a last frame, then ends the connection. */
  end(frame: Frame): void;
}

export interface OutputEvents {
  readonly onRoom: () => void;
  readonly onClose: () => void;
}

export type OpenOutput = (events: OutputEvents) => Output;

/** A reader with more than this unsent is behind. */
const ROOM_BYTES = 256 * 1024;
/** How long what is left may take when a stream ends. */
const END_GRACE_MS = 2_000;
const HEARTBEAT = Buffer.from(":\n\n");
/** A client that is cut off reconnects after a second. */
const OPENING = Buffer.from("retry: 1000\n\n");

export function sseOutput(response: ServerResponse): OpenOutput {
  return ({ onRoom, onClose }) => {
    response.on("close", onClose).on("error", onClose).on("drain", onRoom);
    // The end of the connection is the end of the stream: no chunks to frame, and the bytes can be shared as they are.
    response.useChunkedEncodingByDefault = false;
    response.writeHead(200, {
      ...CAREFUL_HEADERS,
      "content-type": "text/event-stream; charset=utf-8",
      connection: "close",
      "x-accel-buffering": "no",
    });
    response.write(OPENING);
    if (response.destroyed) onClose();
    return {
      get hasRoom() {
        return response.writableLength < ROOM_BYTES;
      },
      send: (_frames, bytes) => void response.write(bytes),
      heartbeat() {
        if (response.writableLength === 0) response.write(HEARTBEAT);
      },
      end({ bytes }) {
        response.end(bytes);
        setTimeout(() => cut(response), END_GRACE_MS).unref();
      },
    };
  };
}

/** A late reader finds a broken connection, not a part that looks complete; and the kernel keeps none of it. */
function cut(response: ServerResponse): void {
  const { socket } = response;
  // The other end of a socket file has no address, and cannot be reset.
  if (socket?.remoteAddress === undefined) response.destroy();
  else socket.resetAndDestroy();
}

/** What the client sends is ignored. The transport sends heartbeats itself. */
export function socketOutput(channel: Channel): OpenOutput {
  return ({ onRoom, onClose }) => {
    let hasRoom = true;
    const onDrain = (): void => {
      hasRoom = true;
      onRoom();
    };
    const ignore = (): void => undefined;
    channel.open({ onMessage: ignore, onTooLong: ignore, onDrain, onEnd: onClose, onClose });
    const send = (frames: readonly Frame[]): void => {
      for (const { text } of frames) if (text !== undefined && !channel.send(text)) hasRoom = false;
    };
    return {
      get hasRoom() {
        return hasRoom;
      },
      send,
      heartbeat: ignore,
      end(frame) {
        send([frame]);
        channel.close();
      },
    };
  };
}
