/** Valid streams, damaged at random (with a fixed seed), sent over real HTTP: each ends in an answer or a typed error. */
import { expect, test } from "vitest";
import { startModelServer } from "../testing/testing.ts";
import { framesOf, toText } from "../testing/testing-frames.ts";
import { collect, HTTP_WIRES, sampleRequest, testProvider, TOOLS } from "../testing/testing-requests.ts";

const STREAMS_PER_WIRE = 400;
const STEP = {
  reasoning: "Thinking about 世界.",
  text: "Some text with 🌍 in it.",
  calls: [
    { tool: "exec_command", args: { cmd: "ls -la" } },
    { tool: "exec_command", args: { cmd: "pwd" } },
  ],
};
const TYPED = /^(provider\.|auth\.rejected$|model\.unknown$)/;

test.each(HTTP_WIRES)(`%s: ${STREAMS_PER_WIRE} damaged streams end in an answer or a typed error`, async (wire) => {
  const random = prng(0x5eed + wire.length);
  const valid = Buffer.from(
    framesOf(wire, { step: STEP, body: { tools: TOOLS }, answers: 0, deltaChars: 8 })
      .map(toText)
      .join(""),
  );
  await using server = await startModelServer({ faults: () => ({ kind: "body", body: damage(valid, random) }) });
  const provider = testProvider(server, wire, { maxAttempts: 1, idleTimeoutMs: 5000, firstByteTimeoutMs: 5000 });
  const ends = new Map<string, number>();
  for (let round = 0; round < STREAMS_PER_WIRE; round += 1) {
    const { events, error } = await collect(provider, sampleRequest());
    const end = error?.code ?? events.at(-1)?.type ?? "nothing";
    ends.set(end, (ends.get(end) ?? 0) + 1);
    if (error === undefined) expect(end).toBe("completed");
    else expect(error.code).toMatch(TYPED);
    // No failure looks like success, and a part is never told twice.
    const indexes = events.flatMap((event) => (event.type === "part" ? [event.index] : []));
    expect(new Set(indexes).size).toBe(indexes.length);
  }
  expect(ends.get("completed") ?? 0).toBeGreaterThan(0);
  expect(ends.get("provider.malformed") ?? 0).toBeGreaterThan(0);
  expect(ends.get("provider.cut") ?? 0).toBeGreaterThan(0);
});

/** mulberry32: small, fast, the same everywhere. */
function prng(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const SCRAPS = [
  "null",
  "[]",
  "{}",
  '"',
  "\\",
  "{",
  "}",
  "data: ",
  "\n\n",
  "\r",
  "\0",
  "1e999",
  "-1",
  "true",
  '{"error":{}}',
  "event: error\n",
  "data: [DONE]\n\n",
  '"__proto__"',
];

function damage(valid: Buffer, random: () => number): Buffer {
  let bytes: Buffer = valid;
  const hits = 1 + Math.floor(random() * 4);
  for (let hit = 0; hit < hits; hit += 1) bytes = hitOnce(bytes, random);
  return bytes;
}

function hitOnce(bytes: Buffer, random: () => number): Buffer {
  const at = Math.floor(random() * bytes.length);
  const to = Math.min(bytes.length, at + 1 + Math.floor(random() * 60));
  const scrap = Buffer.from(SCRAPS[Math.floor(random() * SCRAPS.length)] ?? "");
  switch (Math.floor(random() * 7)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(to)]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), scrap, bytes.subarray(at)]);
    case 3:
      return Buffer.concat([bytes.subarray(0, to), bytes.subarray(at)]);
    case 4:
      return replaceValue(bytes, scrap.toString(), random);
    case 5:
      return swapEvents(bytes, random);
    default: {
      const flipped = Buffer.from(bytes);
      if (flipped.length > 0) flipped[at] = (flipped[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      return flipped;
    }
  }
}

/** Keeps the JSON valid and makes its shape wrong, which is where careless readers fall. */
function replaceValue(bytes: Buffer, scrap: string, random: () => number): Buffer {
  const events = bytes.toString("latin1").split("\n\n");
  const index = Math.floor(random() * events.length);
  const value = /^(null|\[\]|\{\}|1e999|-1|true)$/.test(scrap) ? scrap : "7";
  const fields = [...(events[index] ?? "").matchAll(/"[a-zA-Z_]+":(?:"[^"]*"|\d+|\{|\[)/g)];
  const field = fields[Math.floor(random() * fields.length)]?.[0];
  if (field === undefined || field.endsWith("{") || field.endsWith("[")) return bytes;
  events[index] = (events[index] ?? "").replace(field, () => field.replace(/:.*$/s, `:${value}`));
  return Buffer.from(events.join("\n\n"), "latin1");
}

function swapEvents(bytes: Buffer, random: () => number): Buffer {
  const events = bytes.toString("latin1").split("\n\n");
  const a = Math.floor(random() * events.length);
  const b = Math.floor(random() * events.length);
  [events[a], events[b]] = [events[b] ?? "", events[a] ?? ""];
  return Buffer.from(events.join("\n\n"), "latin1");
}
