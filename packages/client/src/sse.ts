/** Server-sent events out of a stream of bytes, as their specification reads them, with a cap on one event. */
import { HeddleApiError } from "./api-error.ts";

export interface ServerSentEvent {
  /** `message` unless it has a name. */
  readonly event: string;
  readonly id: string | undefined;
  readonly data: string;
}

/** An event holds one stored event, at most an image. */
const MAX_EVENT_CHARS = 64 * 1024 * 1024;

/** `onBytes`: something came, also what is no event. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onBytes?: () => void,
): AsyncGenerator<ServerSentEvent, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onBytes?.();
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      if (rest.length > MAX_EVENT_CHARS)
        throw new HeddleApiError("server.failed", "an event of the server is too long");
      for (const block of blocks) {
        const event = parseBlock(block);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    // Leaving early lets go of the connection.
    await reader.cancel().catch(() => undefined);
  }
}

/** undefined for a heartbeat or a setting. */
function parseBlock(block: string): ServerSentEvent | undefined {
  let event = "message";
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    switch (line.slice(0, colon)) {
      case "event":
        event = value;
        break;
      case "id":
        id = value;
        break;
      case "data":
        data.push(value);
        break;
    }
  }
  return data.length === 0 ? undefined : { event, id, data: data.join("\n") };
}
