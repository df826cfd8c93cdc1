import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readGitInfo } from "./git-info.ts";

const root = mkdtempSync(join(tmpdir(), "heddle-git-info-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const SHA = "0123456789abcdef0123456789abcdef01234567";

/** A repository made of these files. */
function repository(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(root, name);
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(join(folder, file, ".."), { recursive: true });
    writeFileSync(join(folder, file), content);
  }
  return folder;
}

const BRANCH = { ".git/HEAD": "ref: refs/heads/work/it\n", ".git/refs/heads/work/it": `${SHA}\n` };
const info = (more: object): object => ({ sha: SHA, branch: "work/it", originUrl: null, ...more });
const origin = (url: string) => ({
  ...BRANCH,
  ".git/config": `[core]\n\tbare = false\n[remote "origin"]\n\turl = ${url}\n`,
});

test.each([
  ["a branch", BRANCH, info({})],
  ["no branch", { ".git/HEAD": `${SHA}\n` }, info({ branch: null })],
  [
    "packed refs",
    { ".git/HEAD": BRANCH[".git/HEAD"], ".git/packed-refs": `# pack-refs\n${SHA} refs/heads/work/it\n` },
    info({}),
  ],
  ["no commit", { ".git/HEAD": "ref: refs/heads/main\n" }, undefined],
  ["a way out", { ".git/HEAD": "ref: refs/heads/../../../x\n", x: `${SHA}\n` }, undefined],
  [
    "a password",
    origin("https://user:secret@example.com/a/b.git?token=t"),
    info({ originUrl: "https://example.com/a/b.git" }),
  ],
  [
    "a password of ssh",
    origin("ssh://git:secret@example.com/a.git"),
    info({ originUrl: "ssh://git@example.com/a.git" }),
  ],
  ["an address of scp", origin("git@example.com:a/b.git"), info({ originUrl: "git@example.com:a/b.git" })],
  ["another remote", { ...BRANCH, ".git/config": '[remote "fork"]\n\turl = https://x/y\n' }, info({})],
])("%s", (name, files, expected) => {
  expect(readGitInfo(repository(name, files))).toEqual(expected);
});

test("a worktree is read through its file, from below its top; links and pipes are left alone", () => {
  const main = repository("main", {
    ...BRANCH,
    ".git/worktrees/w/HEAD": `${SHA}\n`,
    ".git/worktrees/w/commondir": "../..\n",
  });
  const tree = repository("tree", { ".git": `gitdir: ${join(main, ".git/worktrees/w")}\n`, "below/x": "" });
  expect(readGitInfo(join(tree, "below"))).toEqual(info({ branch: null }));
  const linked = repository("linked", {
    ".git/HEAD": "ref: refs/heads/a\n",
    secret: `${SHA}\n`,
    ".git/refs/heads/x": "",
  });
  symlinkSync(join(linked, "secret"), join(linked, ".git/refs/heads/a"));
  expect(readGitInfo(linked)).toBeUndefined();
  execFileSync("mkfifo", [join(linked, ".git/refs/heads/b")]);
  writeFileSync(join(linked, ".git/HEAD"), "ref: refs/heads/b\n");
  expect(readGitInfo(linked)).toBeUndefined();
  expect(readGitInfo(root)).toBeUndefined();
});
