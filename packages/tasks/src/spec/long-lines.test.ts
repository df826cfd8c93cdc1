import { expect, test } from "vitest";
import { readSpec } from "./read-spec.ts";

/** What a page can be made of so that a pattern would try every way to read it. */
const PAGES = [
  `# a${" ".repeat(200_000)}x\n\ndo it\n`,
  `# a\n\n## goal${" ".repeat(200_000)}x\n\ndo it\n`,
  `# a${"#".repeat(200_000)}x\n\ndo it\n`,
  `${"---\n".repeat(50_000)}x\n`,
];

test("12.11: a page is read in time by its length alone", () => {
  for (const text of PAGES) {
    const before = process.threadCpuUsage();
    try {
      readSpec({ text, file: "order.md", folder: "/" });
    } catch {
      // What it says is for other tests.
    }
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(1500);
  }
}, 60_000);
