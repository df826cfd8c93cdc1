import { once } from "node:events";
import { createServer } from "node:net";
import { performance } from "node:perf_hooks";
import { expect, test } from "vitest";
import { streamModel } from "./stream.ts";
import { startModelServer, type Fault } from "../testing/testing.ts";
import { HTTP_WIRES, sampleRequest, testProvider } from "../testing/testing-requests.ts";

const LIMIT_MS = 100;
const SCRIPT = [
  { reasoning: "Thinking.", text: "An answer.", calls: [{ tool: "exec_command", args: { cmd: "ls -la" } }] },
];

const STATES: readonly (readonly [string, Fault])[] = [
  ["waiting for the headers", { kind: "stall", at: "before-headers" }],
  ["waiting for the first byte", { kind: "stall", at: "after-headers" }],
  ["inside a delta", { kind: "stall", at: "mid-delta" }],
  ["inside tool arguments", { kind: "stall", at: "mid-args" }],
  ["after the last delta", { kind: "stall", at: "after-last-delta" }],
  ["between comments", { kind: "comments", everyMs: 5 }],
  ["in a flood of events", { kind: "endless", data: '{"type":"ping"}' }],
  ["in the pause before a retry", { kind: "status", status: 503, headers: { "retry-after": "60" } }],
  ["reading an error", { kind: "status", status: 400, headers: { "content-length": "5000" } }],
];

for (const wire of HTTP_WIRES) {
  test.each(STATES)(
    `${wire}: an abort %s ends the request within ${LIMIT_MS} ms and closes the connection`,
    async (_, fault) => {
      await using server = await startModelServer({ script: SCRIPT, faults: () => fault });
      const controller = new AbortController();
      const ended = readToEnd(testProvider(server, wire), controller.signal);
      const request = await server.arrived(0);
      // Let the client get as far as the fault allows before it is stopped.
      await turnsOfTheLoop(20);
      const abortedAt = performance.now();
      controller.abort();
      const error = await ended;
      expect(performance.now() - abortedAt).toBeLessThan(LIMIT_MS);
      expect(error).toMatchObject({ code: "turn.interrupted" });
      await request.closed;
      expect(performance.now() - abortedAt).toBeLessThan(LIMIT_MS);
    },
  );
}

test("an abort in the middle of a TLS handshake is as quick", async () => {
  const mute = createServer((socket) => socket.on("error", () => socket.destroy()).resume()).listen(0, "127.0.0.1");
  await once(mute, "listening");
  const connected = once(mute, "connection");
  const address = mute.address();
  const baseUrl = `https://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/v1`;
  await using server = await startModelServer();
  const controller = new AbortController();
  const ended = readToEnd(testProvider(server, "openai-chat", { baseUrl }), controller.signal);
  await connected;
  const abortedAt = performance.now();
  controller.abort();
  expect(await ended).toMatchObject({ code: "turn.interrupted" });
  expect(performance.now() - abortedAt).toBeLessThan(LIMIT_MS);
  mute.close();
  await once(mute, "close");
});

test("a signal that is aborted already sends nothing", async () => {
  await using server = await startModelServer();
  expect(await readToEnd(testProvider(server, "gemini"), AbortSignal.abort())).toMatchObject({
    code: "turn.interrupted",
  });
  expect(server.requests).toHaveLength(0);
});

test("a reader that leaves early closes the connection", async () => {
  await using server = await startModelServer({ script: SCRIPT, faults: [{ kind: "stall", at: "after-last-delta" }] });
  const { signal } = new AbortController();
  for await (const event of streamModel(testProvider(server, "anthropic"), sampleRequest(), { signal })) {
    if (event.type === "text.delta") break;
  }
  await server.requests[0]!.closed;
  expect(server.openConnections).toBe(0);
});

async function readToEnd(provider: Parameters<typeof streamModel>[0], signal: AbortSignal): Promise<unknown> {
  try {
    for await (const event of streamModel(provider, sampleRequest(), { signal }))
      if (event.type === "completed") return event;
    return undefined;
  } catch (error) {
    return error;
  }
}

async function turnsOfTheLoop(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) {
    const { promise, resolve } = Promise.withResolvers<void>();
    setImmediate(resolve);
    await promise;
  }
}
