import { readFile } from "node:fs/promises";
import path from "node:path";
import { describeMethods } from "@heddle/server/methods";
import { expect, test } from "vitest";
import { methodTable, withTable } from "./protocol-page.ts";

/** Tables are laid out by the formatter. */
function bare(page: string): string {
  return page.replaceAll(/ +/g, " ").replaceAll(/-{3,}/g, "---");
}

test("the page about the protocol says what the server does", async () => {
  const page = await readFile(path.join(import.meta.dirname, "..", "docs", "build", "protocol.md"), "utf8");
  expect(bare(withTable(page, methodTable(describeMethods())))).toBe(bare(page));
});

test("every method that is not supported has a reason", () => {
  const methods = describeMethods();
  expect(methods.length).toBeGreaterThan(100);
  const silent = methods.filter(({ isSupported, note }) => !isSupported && note === "").map(({ name }) => name);
  expect(silent).toEqual([]);
});

test("a page without a place for the table is refused", () => {
  expect(() => withTable("# Protocol\n", "")).toThrow("has no place for the table");
});
