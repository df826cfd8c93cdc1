import { expect, test } from "vitest";
import { parseAddress } from "./address.ts";

const tcp = (host: string, port: number, hasTls = false) => ({ kind: "tcp", host, port, hasTls });

test.each([
  ["ws://127.0.0.1:1", tcp("127.0.0.1", 1)],
  ["wss://127.0.0.1:1/", tcp("127.0.0.1", 1, true)],
  ["HTTP://[::1]:65535", tcp("::1", 65_535)],
  ["https://0.0.0.0:0", tcp("0.0.0.0", 0, true)],
  ["unix://", { kind: "unix", path: undefined }],
  ["unix://a/b.sock", { kind: "unix", path: "/here/a/b.sock" }],
  ["unix:///a", { kind: "unix", path: "/a" }],
])("%s is an address", (text, at) => {
  expect(parseAddress(text, "/here", ["http", "ws"])).toEqual(at);
});

test.each([
  "127.0.0.1:1",
  "ws://localhost:1",
  "ws://127.0.0.1",
  "ws://127.0.0.1:65536",
  "ws://127.0.0.1:1/path",
  "ws://[127.0.0.1:1",
  "wsss://127.0.0.1:1",
  "tcp://127.0.0.1:1",
  " ws://127.0.0.1:1",
  "",
])("%j is none", (text) => {
  expect(parseAddress(text, "/here", ["http", "ws"])).toBeUndefined();
});

test("only the schemes that are named count", () => {
  expect(parseAddress("http://127.0.0.1:1", "/here", ["ws"])).toBeUndefined();
});
