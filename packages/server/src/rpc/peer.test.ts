import { HeddleError } from "@heddle/protocol";
import { expect, test } from "vitest";
import { MemoryChannel } from "../../test/memory-channel.ts";
import { Peer, RpcError, type Answered, type PeerHandlers } from "./peer.ts";

function openPeer(handlers: Partial<PeerHandlers> = {}) {
  const channel = new MemoryChannel();
  const logged: string[] = [];
  const peer = new Peer(channel, {
    request: (method, params) => Promise.resolve({ result: { method, params } }),
    notification: () => undefined,
    closed: () => undefined,
    log: (line) => logged.push(line),
    ...handlers,
  });
  return { channel, peer, logged };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("W6: answers carry the id they were asked with, text or number, and what must come after them comes after", async () => {
  const { channel, peer } = openPeer({
    request: () => Promise.resolve({ result: {}, after: () => peer.notify("later", {}) }),
  });
  channel.says({ id: "a", method: "x" });
  await settled();
  channel.says({ jsonrpc: "2.0", id: 7, method: "x", params: {} });
  await settled();
  expect(channel.sent).toMatchObject([{ id: "a", result: {} }, { method: "later" }, { id: 7 }, { method: "later" }]);
  expect(JSON.stringify(channel.sent)).not.toContain("jsonrpc");
});

test("failures are numbers and words; a coded one names its code", async () => {
  const failures = [new RpcError(-32600, "Not initialized"), new HeddleError("store.busy", "later"), new Error("oops")];
  const { channel } = openPeer({ request: () => Promise.reject(failures.shift()) });
  for (const id of [1, 2, 3]) channel.says({ id, method: "x" });
  await settled();
  expect(channel.sent).toEqual([
    { error: { code: -32600, message: "Not initialized" }, id: 1 },
    { error: { code: -32001, message: "later", data: { code: "store.busy" } }, id: 2 },
    { error: { code: -32603, message: "oops", data: { code: "internal" } }, id: 3 },
  ]);
});

test("what is no message is logged, never answered, and ends nothing", async () => {
  const { channel, logged } = openPeer();
  for (const line of ["{", "[]", "null", '{"id":1}', '{"id":{},"method":"x"}', '"text"']) channel.says(line);
  channel.says({ id: 1, method: "x" });
  await settled();
  expect(channel.sent).toHaveLength(1);
  expect(logged).toHaveLength(6);
  expect(channel.isClosed).toBe(false);
});

test("S44: a key in a line that is not a message does not reach the log", () => {
  const { channel, logged } = openPeer();
  channel.says({ id: null, method: "account/login/start", params: { type: "apiKey", apiKey: "canary" } });
  expect(logged).toEqual(["a line that is not a message was skipped: 87 characters"]);
});

test("S44: an error of any shape is an answer, and ends nothing", async () => {
  const { channel, peer } = openPeer();
  const answers: Answered[] = [];
  const errors: unknown[] = [
    { message: "no" },
    { message: { toString: 1 } },
    { toString: 1 },
    "text",
    7,
    [],
    { message: null },
  ];
  for (const [id, error] of errors.entries()) {
    peer.ask(id, { method: "x", params: {} }, (answer) => answers.push(answer));
    channel.says({ id, error });
  }
  channel.says({ id: 99, error: { toString: 1 } });
  expect(answers.map((answer) => (answer.kind === "error" ? answer.message : answer.kind))).toEqual([
    "no",
    '{"toString":1}',
    '{"toString":1}',
    "text",
    "7",
    "[]",
    "null",
  ]);
  channel.says({ id: 1, method: "x" });
  await settled();
  expect(channel.sent.at(-1)).toMatchObject({ id: 1, result: {} });
});

test("W4: a client that goes away settles everything that was asked of it, once", () => {
  const { channel, peer } = openPeer();
  const answers: Answered[] = [];
  peer.ask(0, { method: "first", params: {} }, (answer) => answers.push(answer));
  peer.ask(1, { method: "second", params: {} }, (answer) => answers.push(answer));
  peer.ask(2, { method: "withdrawn", params: {} }, (answer) => answers.push(answer));
  peer.withdraw(2);
  channel.says({ id: 0, result: { decision: "accept" } });
  channel.says({ id: 0, result: { decision: "decline" } });
  channel.close();
  peer.ask(3, { method: "too late", params: {} }, (answer) => answers.push(answer));
  expect(answers).toEqual([{ kind: "result", result: { decision: "accept" } }, { kind: "gone" }, { kind: "gone" }]);
  expect(channel.sent).toMatchObject([{ method: "first", id: 0 }, { method: "second", id: 1 }, { id: 2 }]);
});

test("more than 512 calls at once are refused, and none is lost", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { channel } = openPeer({
    async request() {
      await promise;
      return { result: {} };
    },
  });
  for (let id = 0; id < 600; id += 1) channel.says({ id, method: "x" });
  await settled();
  expect(channel.sent).toHaveLength(88);
  expect(channel.sent[0]).toEqual({ error: { code: -32001, message: "Server overloaded; retry later." }, id: 512 });
  resolve();
  await settled();
  expect(channel.sent).toHaveLength(600);
});

test("S42: a message that is too long is said to be so, and the connection continues", async () => {
  const { channel } = openPeer();
  channel.listener.onTooLong();
  expect(channel.sent).toMatchObject([{ error: { code: -32600 }, id: null }]);
  channel.says({ id: 1, method: "x" });
  await settled();
  expect(channel.sent).toHaveLength(2);
});

test("a client that says no more still gets its answers", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { channel } = openPeer({
    async request() {
      await promise;
      return { result: {} };
    },
  });
  channel.says({ id: 1, method: "x" });
  channel.listener.onEnd();
  expect(channel.isClosed).toBe(false);
  resolve();
  await settled();
  expect(channel.sent).toEqual([{ id: 1, result: {} }]);
  expect(channel.isClosed).toBe(true);
});
