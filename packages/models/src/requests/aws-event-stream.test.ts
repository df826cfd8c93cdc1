import { crc32 } from "node:zlib";
import { describe, expect, test } from "vitest";
import { AwsEventReader } from "./aws-event-stream.ts";
import { resolveProvider } from "../providers/providers.ts";
import { awsChunk, awsFrame } from "../testing/testing-aws.ts";

const PROVIDER = resolveProvider(
  [{ id: "test", wire: "anthropic", baseUrl: "http://127.0.0.1:1", key: "test-key" }],
  "test",
  {},
);
const EVENTS = ['{"type":"ping"}', `{"type":"x","text":"${"ä€😀".repeat(40)}"}`, '{"type":"message_stop"}'];
const BYTES = Buffer.concat([
  awsChunk(EVENTS[0] ?? ""),
  awsFrame({ ":message-type": "event", ":event-type": "initial-response" }, "{}"),
  ...EVENTS.slice(1).map(awsChunk),
]);

function read(...pieces: readonly Buffer[]): readonly string[] {
  const reader = new AwsEventReader(PROVIDER);
  return pieces.flatMap((piece) => [...reader.feed(piece)].map(({ data }) => data));
}

describe("12.19: frames of Bedrock", () => {
  test("are read the same, wherever the bytes are cut", () => {
    expect(read(BYTES)).toEqual(EVENTS);
    for (let cut = 0; cut <= BYTES.length; cut += 1)
      expect(read(BYTES.subarray(0, cut), BYTES.subarray(cut))).toEqual(EVENTS);
    expect(read(...[...BYTES].map((byte) => Buffer.from([byte])))).toEqual(EVENTS);
  });

  test("with any one bit changed are refused", () => {
    for (let at = 0; at < BYTES.length; at += 1) {
      const changed = Buffer.from(BYTES);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => read(changed), `byte ${at}`).toThrow(/wrong checksum/);
    }
  });

  test.each([
    ["a size below the least", sized(15), /impossible size/],
    ["a size above the most", sized(17 * 1024 * 1024), /impossible size/],
    ["headers longer than the frame", sized(40, 100), /headers that make no sense/],
  ])("with %s are refused", (_what, bytes, why) => {
    expect(() => read(bytes)).toThrow(why);
  });

  test("that report a failure say it in the words of the wire", () => {
    const headers = { ":message-type": "exception", ":exception-type": "throttlingException" };
    const reader = new AwsEventReader(PROVIDER);
    const error = { type: "rate_limit_error", message: "throttlingException: slow down" };
    expect(reader.feed(awsFrame(headers, '{"message":"slow down"}'))).toEqual([
      { event: "error", data: JSON.stringify({ type: "error", error }) },
    ]);
    expect(reader.end()).toEqual([]);
  });
});

/** A frame with right checksums that says this of its size. */
function sized(total: number, headersLength = 0): Buffer {
  const whole = Buffer.alloc(Math.min(total, 64));
  const prelude = whole.subarray(0, 8);
  prelude.writeUInt32BE(total, 0);
  prelude.writeUInt32BE(headersLength, 4);
  whole.writeUInt32BE(crc32(prelude), 8);
  if (total <= 64 && total >= 16) whole.writeUInt32BE(crc32(whole.subarray(0, -4)), total - 4);
  return whole;
}
