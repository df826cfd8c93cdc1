/**
 * Frames of `application/vnd.amazon.eventstream` in, the events they carry out. Copes with any cut of the bytes; both
 * checksums of a frame are checked, and a frame that is too large, torn or unlike the format is a typed error.
 *
 *   total u32 │ headers u32 │ crc of these eight │ headers │ payload │ crc of everything before it
 */
import { crc32 } from "node:zlib";
import { malformed } from "./failure.ts";
import type { Provider } from "../providers/providers.ts";
import type { EventSource } from "./sse.ts";
import { parseJson, record, text } from "../wire/untrusted.ts";
import type { ServerEvent } from "../wire/wire.ts";

const PRELUDE_BYTES = 12;
const CRC_BYTES = 4;
/** What the format allows. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

export class AwsEventReader implements EventSource {
  readonly #provider: Provider;
  #held = Buffer.alloc(4096);
  #size = 0;

  constructor(provider: Provider) {
    this.#provider = provider;
  }

  feed(bytes: Buffer): readonly ServerEvent[] {
    this.#hold(bytes);
    const events: ServerEvent[] = [];
    let start = 0;
    for (;;) {
      const frame = this.#frameAt(start);
      if (frame === undefined) break;
      start += frame.length;
      const event = this.#eventIn(frame);
      if (event !== undefined) events.push(event);
    }
    this.#held.copyWithin(0, start, this.#size);
    this.#size -= start;
    return events;
  }

  /** Half a frame is half an answer; whoever reads on finds that its end is missing. */
  end(): readonly ServerEvent[] {
    return [];
  }

  #hold(bytes: Buffer): void {
    const needed = this.#size + bytes.length;
    if (needed > this.#held.length) {
      const larger = Buffer.alloc(Math.max(needed, 2 * this.#held.length));
      this.#held.copy(larger, 0, 0, this.#size);
      this.#held = larger;
    }
    bytes.copy(this.#held, this.#size);
    this.#size = needed;
  }

  #frameAt(start: number): Buffer | undefined {
    if (this.#size - start < PRELUDE_BYTES) return undefined;
    const total = this.#held.readUInt32BE(start);
    const prelude = this.#held.subarray(start, start + 8);
    if (crc32(prelude) !== this.#held.readUInt32BE(start + 8))
      throw this.#wrong("a frame with a wrong checksum", start);
    if (total > MAX_FRAME_BYTES || total < PRELUDE_BYTES + CRC_BYTES)
      throw this.#wrong("a frame of impossible size", start);
    if (this.#size - start < total) return undefined;
    const frame = this.#held.subarray(start, start + total);
    if (crc32(frame.subarray(0, -CRC_BYTES)) !== frame.readUInt32BE(total - CRC_BYTES))
      throw this.#wrong("a frame with a wrong checksum", start);
    return frame;
  }

  #eventIn(frame: Buffer): ServerEvent | undefined {
    const headersEnd = PRELUDE_BYTES + frame.readUInt32BE(4);
    const headers =
      headersEnd > frame.length - CRC_BYTES ? undefined : readHeaders(frame.subarray(PRELUDE_BYTES, headersEnd));
    if (headers === undefined) throw malformed(this.#provider, "a frame with headers that make no sense", frame);
    const payload = record(parseJson(frame.subarray(headersEnd, -CRC_BYTES).toString("utf8"))) ?? {};
    if (headers.get(":message-type") !== "event") return failure(headers, text(payload["message"]));
    if (headers.get(":event-type") !== "chunk") return undefined;
    const data = text(payload["bytes"]);
    if (data === undefined) throw malformed(this.#provider, "a chunk without bytes", frame);
    return { data: Buffer.from(data, "base64").toString("utf8") };
  }

  #wrong(what: string, start: number): Error {
    return malformed(this.#provider, what, this.#held.subarray(start, this.#size));
  }
}

/** The service's own exceptions, in the words of the wire that reads the events. */
const KINDS: Readonly<Record<string, string>> = {
  throttlingException: "rate_limit_error",
  validationException: "invalid_request_error",
  accessDeniedException: "permission_error",
  modelTimeoutException: "timeout_error",
  serviceUnavailableException: "overloaded_error",
};

function failure(headers: ReadonlyMap<string, string>, message: string | undefined): ServerEvent {
  const name = headers.get(":exception-type") ?? headers.get(":error-code") ?? "unknown";
  const type = KINDS[name] ?? "api_error";
  const reason = message ?? headers.get(":error-message") ?? "no reason given";
  return { event: "error", data: JSON.stringify({ type: "error", error: { type, message: `${name}: ${reason}` } }) };
}

/** Bytes that the value of each type of header has; strings and byte arrays say their own length. */
const FIXED_BYTES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 };
const BYTES_TYPE = 6;
const STRING_TYPE = 7;

/** Those that are text; undefined when the bytes are no headers. */
function readHeaders(bytes: Buffer): ReadonlyMap<string, string> | undefined {
  const headers = new Map<string, string>();
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0);
    const type = bytes[nameEnd];
    if (type === undefined) return undefined;
    const isLong = type === BYTES_TYPE || type === STRING_TYPE;
    if (isLong && nameEnd + 3 > bytes.length) return undefined;
    const length = isLong ? bytes.readUInt16BE(nameEnd + 1) : FIXED_BYTES[type];
    if (length === undefined) return undefined;
    const valueStart = nameEnd + 1 + (isLong ? 2 : 0);
    if (valueStart + length > bytes.length) return undefined;
    if (type === STRING_TYPE)
      headers.set(bytes.toString("utf8", at + 1, nameEnd), bytes.toString("utf8", valueStart, valueStart + length));
    at = valueStart + length;
  }
  return headers;
}
