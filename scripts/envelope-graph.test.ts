import { readFileSync } from "node:fs";
import { BUILT_IN_ENVELOPES } from "@heddle/tools";
import { expect, test } from "vitest";
import { PAGE, withDrawing } from "./envelope-graph.ts";

test("E8: the page about envelopes has the drawing of the registry, and names each built-in envelope", () => {
  const page = readFileSync(PAGE, "utf8");
  // Stale: npm run envelopes
  expect(withDrawing(page)).toBe(page);
  for (const id of BUILT_IN_ENVELOPES.keys()) expect(page).toContain(`| \`${id}\``);
});

test("a drawing that differs from the registry is found, and so is a page without one", () => {
  const page = readFileSync(PAGE, "utf8");
  const stale = page.replace("explore -->", "explore --->");
  expect(stale).not.toBe(page);
  expect(withDrawing(stale)).toBe(page);
  expect(() => withDrawing("# Envelopes\n")).toThrow("has no mermaid block");
});
