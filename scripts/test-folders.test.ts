import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { makeFolders } from "./test-folders.ts";

function openBase(): Disposable & { readonly path: string } {
  const base = mkdtempSync(path.join(tmpdir(), "heddle-base-"));
  return { path: base, [Symbol.dispose]: () => rmSync(base, { recursive: true, force: true }) };
}

test("14: the temporary folder of a run has a real and short path outside every repository, wherever TMPDIR leads", () => {
  using base = openBase();
  const link = path.join(base.path, "a".repeat(150));
  symlinkSync("/tmp", link);
  const inRepository = mkdtempSync("/tmp/r-");
  mkdirSync(path.join(inRepository, ".git"));
  using _inRepository = { [Symbol.dispose]: () => rmSync(inRepository, { recursive: true }) };
  for (const given of ["/tmp", link, base.path, inRepository]) {
    const folders = makeFolders({ isHostile: false }, given);
    expect(realpathSync(folders.temporary)).toBe(folders.temporary);
    expect(folders.temporary.length).toBeLessThan(60);
    expect(folders.temporary.startsWith(inRepository)).toBe(false);
    folders[Symbol.dispose]();
    expect(existsSync(path.dirname(folders.temporary))).toBe(false);
  }
});

test("14: that of a hostile run has a space in its name, below a stray .git", () => {
  using folders = makeFolders({ isHostile: true });
  const outer = path.dirname(folders.temporary);
  expect(path.basename(outer)).toContain(" ");
  expect(existsSync(path.join(outer, ".git"))).toBe(true);
});
