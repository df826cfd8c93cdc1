/**
 * Bytes in, server-sent events out. Copes with any cut of the bytes, with CR, LF and both; refuses what is not UTF-8 and
 * events larger than the cap, with a typed error.
 */
import { createParser, type EventSourceParser } from "eventsource-parser";
import { malformed } from "./failure.ts";
import type { Provider } from "../providers/providers.ts";
import type { ServerEvent } from "../wire/wire.ts";

/** The closing event of one wire repeats the whole answer; nothing honest is larger than this. */
const MAX_EVENT_CHARS = 8 * 1024 * 1024;

/** Bytes of an answer in, its events out, whatever the framing. */
export interface EventSource {
  feed(bytes: Buffer): readonly ServerEvent[];
  end(): readonly ServerEvent[];
}

export class EventReader implements EventSource {
  readonly #provider: Provider;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  readonly #parser: EventSourceParser;
  #events: ServerEvent[] = [];
  #isTooLarge = false;

  constructor(provider: Provider) {
    this.#provider = provider;
    this.#parser = createParser({
      maxBufferSize: MAX_EVENT_CHARS,
      onEvent: (event) => this.#events.push(event),
      // Fields nobody knows are ignored, as the format demands.
      onError: (error) => {
        if (error.type === "max-buffer-size-exceeded") this.#isTooLarge = true;
      },
    });
  }

  feed(bytes: Buffer): readonly ServerEvent[] {
    this.#parser.feed(this.#decode(bytes));
    if (this.#isTooLarge) {
      throw malformed(this.#provider, `an event of more than ${MAX_EVENT_CHARS / 1024 / 1024} MiB`, bytes);
    }
    return this.#take();
  }

  /** The last event of a stream often lacks the empty line that ends it. What is left may be half an event. */
  end(): readonly ServerEvent[] {
    if (!this.#isTooLarge) this.#parser.feed("\n\n");
    return this.#take();
  }

  #decode(bytes: Buffer): string {
    try {
      return this.#decoder.decode(bytes, { stream: true });
    } catch {
      throw malformed(this.#provider, "bytes that are not UTF-8", bytes);
    }
  }

  #take(): readonly ServerEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
