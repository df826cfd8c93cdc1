import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { foldersFromRoot, repositoryRoot } from "./repository.ts";

function tree(): { top: string; inner: string } {
  const top = mkdtempSync(join(tmpdir(), "heddle-repository-"));
  onTestFinished(() => rmSync(top, { recursive: true }));
  const inner = join(top, "a", "b");
  mkdirSync(inner, { recursive: true });
  return { top, inner };
}

test("a repository is found from any folder below it, by its HEAD or by the file of a worktree", () => {
  const { top, inner } = tree();
  mkdirSync(join(top, ".git"));
  writeFileSync(join(top, ".git", "HEAD"), "ref: refs/heads/main\n");
  expect(repositoryRoot(inner)).toBe(top);
  expect(foldersFromRoot(inner)).toEqual([inner, join(top, "a"), top]);
  writeFileSync(join(top, "a", ".git"), "gitdir: ../.git\n");
  expect(repositoryRoot(inner)).toBe(join(top, "a"));
});

test("14: an empty .git above is no repository", () => {
  const { top, inner } = tree();
  mkdirSync(join(top, "a", ".git"));
  expect(repositoryRoot(inner)).toBe(repositoryRoot(tmpdir()));
  expect(foldersFromRoot(inner)).not.toContain(join(top, "a", ".git"));
});
