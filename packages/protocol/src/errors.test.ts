import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import { exitCodeOf, HeddleError, hostFaultOr, reasonOf, toHeddleError } from "./errors.ts";
import { PLAIN } from "./plain-issues.ts";

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: as the system says it`), { code });
}

test("a failure of the host is told from a mistake in what was named", () => {
  expect(hostFaultOr(systemError("EMFILE"), "config.invalid")).toBe("host.exhausted");
  expect(hostFaultOr(systemError("ENOENT"), "config.invalid")).toBe("config.invalid");
  expect(exitCodeOf("host.exhausted")).toBe(8);
});

test("a failure without a code gets one, and keeps its text and its cause", () => {
  const none = systemError("ENFILE");
  expect(toHeddleError(none)).toMatchObject({ code: "host.exhausted", message: "as the system says it", cause: none });
  expect(toHeddleError("odd")).toMatchObject({ code: "internal", message: "odd" });
});

test("14.11: what Node, fetch and zod say is told in plain text, and names what failed where nothing else does", async () => {
  const gone = await readFile("/no/such/file").catch((error: unknown) => error);
  expect(reasonOf(gone)).toBe("no such file or directory");
  expect(toHeddleError(gone).message).toBe("no such file or directory (open /no/such/file)");
  expect(reasonOf(new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") }))).toBe(
    "connect ECONNREFUSED",
  );
  const wrong = z.strictObject({ a: z.strictObject({ n: z.int() }) }).safeParse({ a: { n: "x" } }, PLAIN).error;
  expect(reasonOf(wrong)).toBe("a.n: must be a number");
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
