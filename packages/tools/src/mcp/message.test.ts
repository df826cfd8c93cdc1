import { expect, test } from "vitest";
import { readMessage } from "./message.ts";

test.each([
  ['{"jsonrpc":"2.0","id":1,"method":"ping"}'],
  ['{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'],
  ['{"jsonrpc":"2.0","id":"a","result":{"x":[1]}}'],
  ['{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}'],
])("%s is a message", (text) => {
  expect(readMessage(text)).toEqual(JSON.parse(text));
});

test.each([
  ["hello"],
  ["{}"],
  ["[]"],
  ["null"],
  ['{"jsonrpc":"1.0","id":1,"result":{}}'],
  ['{"jsonrpc":"2.0","id":1}'],
])("%s is none", (text) => {
  expect(readMessage(text)).toBeUndefined();
});

test("a message that is nested without end is told from one that is none", () => {
  expect(readMessage(`{"jsonrpc":"2.0","id":1,"result":{"x":${"[".repeat(5000)}${"]".repeat(5000)}}}`)).toBe("tooDeep");
});
