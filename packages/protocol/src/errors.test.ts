import { expect, test } from "vitest";
import { exitCodeOf, HeddleError, hostFaultOr, toHeddleError } from "./errors.ts";

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: as the system says it`), { code });
}

test("a failure of the host is told from a mistake in what was named", () => {
  expect(hostFaultOr(systemError("EMFILE"), "config.invalid")).toBe("host.exhausted");
  expect(hostFaultOr(systemError("ENOENT"), "config.invalid")).toBe("config.invalid");
  expect(exitCodeOf("host.exhausted")).toBe(8);
});

test("a failure without a code gets one, and keeps its words and its cause", () => {
  const none = systemError("ENFILE");
  expect(toHeddleError(none)).toMatchObject({ code: "host.exhausted", message: none.message, cause: none });
  expect(toHeddleError("odd")).toMatchObject({ code: "internal", message: "odd" });
});

test("of a failure and the one of putting things away after it, the first one counts", () => {
  const first = new HeddleError("store.busy", "first");
  const both = new SuppressedError(systemError("EBADF"), first, "an error was suppressed");
  expect(toHeddleError(new SuppressedError(new Error("last"), both))).toBe(first);
});
