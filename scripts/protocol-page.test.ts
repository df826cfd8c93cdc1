import { readFile } from "node:fs/promises";
import path from "node:path";
import { describeMethods } from "@heddle/server/methods";
import { expect, test } from "vitest";
import { readMethods } from "../conformance/app-server/recorded.ts";
import { methodTable, withTable } from "./protocol-page.ts";

/** Tables are laid out by the formatter. */
function bare(page: string): string {
  return page.replaceAll(/ +/g, " ").replaceAll(/-{3,}/g, "---");
}

test("the page about the protocol says what the server does", async () => {
  const page = await readFile(path.join(import.meta.dirname, "..", "docs", "build", "protocol.md"), "utf8");
  expect(bare(withTable(page, methodTable(describeMethods())))).toBe(bare(page));
});

test("every method that Codex's schema has is here once, carried out or refused with what to use instead", () => {
  const { stable, experimental } = readMethods();
  const methods = describeMethods();
  const called = (wanted: boolean): readonly string[] =>
    methods.filter(({ isExperimental }) => isExperimental === wanted).map(({ name }) => name);
  // These are left from an older protocol: Codex answers them, and its schema does not tell of them.
  const undescribed = ["getConversationSummary", "gitDiffToRemote", "getAuthStatus"];
  expect(called(false).toSorted()).toEqual([...Object.keys(stable), ...undescribed].toSorted());
  expect(called(true).toSorted()).toEqual(Object.keys(experimental).toSorted());
  const silent = methods.filter(({ isSupported, note }) => !isSupported && !/; use ./.test(note));
  expect(silent.map(({ name }) => name)).toEqual([]);
});

test("a page without marks for the table is refused", () => {
  expect(() => withTable("# Protocol\n", "")).toThrow("has no marks for the table");
});
