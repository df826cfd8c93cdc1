import { readFile } from "node:fs/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { z } from "zod";
import { diskFaultOf, exitCodeOf, HeddleError, hostFaultOr, reasonOf, toHeddleError } from "./errors.ts";
import { PLAIN } from "./text/plain-issues.ts";

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: as the system says it`), { code });
}

const pattern = (source: string, flags = ""): RegExp => new RegExp(source, flags);

function raise(error: Error): never {
  throw error;
}

test("a failure of the host is told from a mistake in what was named", () => {
  expect(hostFaultOr(systemError("EMFILE"), "config.invalid")).toBe("host.exhausted");
  expect(hostFaultOr(systemError("ENOENT"), "config.invalid")).toBe("config.invalid");
  expect(exitCodeOf("host.exhausted")).toBe(8);
  expect(toHeddleError(systemError("ENOSPC"))).toMatchObject({ code: "store.full", message: "the disk is full" });
  expect(diskFaultOf(systemError("EDQUOT"))).toBe("store.full");
  expect(exitCodeOf("store.full")).toBe(8);
});

test("a failure without a code gets one, and keeps its cause", () => {
  const none = systemError("ENFILE");
  expect(toHeddleError(none)).toMatchObject({
    code: "host.exhausted",
    message: "too many open files on this machine",
    cause: none,
  });
  expect(toHeddleError("odd")).toMatchObject({ code: "internal", message: "odd" });
});

test("14.11: what Node, fetch and zod say is told in plain text, and names what failed where nothing else does", async () => {
  const gone = await readFile("/no/such/file").catch((error: unknown) => error);
  expect(reasonOf(gone)).toBe("it does not exist");
  expect(toHeddleError(gone).message).toBe("it does not exist (open /no/such/file)");
  const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), { code: "ECONNREFUSED" });
  expect(reasonOf(new TypeError("fetch failed", { cause: refused }))).toBe("connection refused");
  const wrong = z.strictObject({ a: z.strictObject({ n: z.int() }) }).safeParse({ a: { n: "x" } }, PLAIN).error;
  expect(reasonOf(wrong)).toBe("a.n: must be a number");
});

test.each([
  ["no JSON", () => JSON.parse("hello"), "it is not valid JSON"],
  ["no pattern", () => pattern("(a"), "unterminated group"],
  ["unknown flags", () => pattern("a", "zz"), "unknown flags"],
  ["no UTF-8", () => new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.of(0xff)), "not UTF-8 text"],
  ["no URL", () => new URL("::"), "not a URL"],
  ["cut off data", () => gunzipSync(gzipSync("text").subarray(0, 12)), "the compressed data is cut off"],
  ["other data", () => gunzipSync("text"), "the compressed data is damaged"],
  [
    "a failed program",
    () => raise(Object.assign(new Error("Command failed"), { cmd: "sh -c x", code: 3 })),
    "sh ended with 3",
  ],
  ["a time limit", () => raise(new DOMException("The operation was aborted", "TimeoutError")), "no answer in time"],
  ["a code without a text", () => raise(systemError("EOTHER")), "error EOTHER"],
  ["an own text", () => raise(new Error("it was closed before its end")), "it was closed before its end"],
])("14.11: the reason of %s", (_name, fail, reason) => {
  let caught: unknown;
  try {
    fail();
  } catch (error) {
    caught = error;
  }
  expect(reasonOf(caught)).toBe(reason);
});

test("14.11: what a schema finds wrong follows the name of a field", () => {
  const Shape = z.strictObject({
    name: z.string().min(1),
    list: z.array(z.string()).max(1),
    kind: z.enum(["a", "b"]),
    size: z.number().positive(),
    url: z.url(),
    own: z.string().regex(/^x/, "must begin with x"),
  });
  const given = { name: "", list: ["a", "b"], kind: "c", size: 0, url: "-", own: "y", more: 1 };
  const found = Shape.safeParse(given, PLAIN).error?.issues.map(({ path, message }) => `${path.join(".")} ${message}`);
  expect(found).toEqual([
    "name must not be empty",
    "list must have at most 1 entries",
    "kind must be one of a, b",
    "size must be more than 0",
    "url must be an http or https address",
    "own must begin with x",
    ' has an unknown key "more"',
  ]);
});

test("of a failure and the one of putting things away after it, the first one counts", () => {
  const first = new HeddleError("store.busy", "first");
  const both = new SuppressedError(systemError("EBADF"), first, "an error was suppressed");
  expect(toHeddleError(new SuppressedError(new Error("last"), both))).toBe(first);
});
