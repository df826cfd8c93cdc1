import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import {
  appendFile,
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Guard } from "./guard.ts";
import type { ProtectedPathViolation } from "./sandbox.ts";

let base: string;
let root: string;

beforeEach(async () => {
  base = await realpath(await mkdtemp(join(tmpdir(), "heddle-guard-")));
  root = join(base, "ws");
  await mkdir(root);
});

afterEach(async () => {
  await rm(base, { recursive: true, force: true });
});

function git(cwd: string, ...args: readonly string[]): string {
  return execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd, encoding: "utf8" });
}

async function put(name: string, content = "x\n"): Promise<void> {
  await mkdir(join(root, name, ".."), { recursive: true });
  await writeFile(join(root, name), content);
}

async function startGuard(): Promise<{ guard: Guard; protectedPaths: string[]; gitFolders: string[] }> {
  const guard = new Guard({
    writeRoots: [root],
    absentMasked: [],
    quarantineDir: async () => join(base, "quarantine"),
  });
  return { guard, ...(await guard.start()) };
}

function names(violations: readonly ProtectedPathViolation[]): string[] {
  return violations.map(({ path }) => path.slice(root.length + 1)).toSorted();
}

test("what is protected already is found at every depth", async () => {
  git(root, "init", "-q");
  await put("a/b/c/d/e/.vscode/settings.json");
  await put("sub/.npmrc");
  await put(".github/workflows/ci.yml");
  await put(".yarnrc.yml");
  git(root, "init", "-q", join(root, "x/y/nested"));
  const { protectedPaths, gitFolders } = await startGuard();
  expect(protectedPaths.map((path) => path.slice(root.length + 1)).toSorted()).toEqual([
    ".git/config",
    ".git/hooks",
    ".git/info",
    ".github/workflows",
    ".yarnrc.yml",
    "a/b/c/d/e/.vscode",
    "sub/.npmrc",
    "x/y/nested/.git/config",
    "x/y/nested/.git/hooks",
    "x/y/nested/.git/info",
  ]);
  expect(gitFolders.map((path) => path.slice(root.length + 1)).toSorted()).toEqual([".git", "x/y/nested/.git"]);
});

const NEW_PATHS = [
  ".heddle/config.toml",
  ".codex/config.toml",
  ".agents/x",
  ".claude/settings.json",
  ".opencode/x",
  ".gemini/settings.json",
  ".cursor/rules",
  ".vscode/tasks.json",
  ".idea/x",
  ".devcontainer/devcontainer.json",
  ".husky/pre-commit",
  ".github/workflows/ci.yml",
];
const NEW_FILES = [
  ".mcp.json",
  "opencode.json",
  ".envrc",
  ".npmrc",
  ".yarnrc",
  ".yarnrc.yml",
  ".bashrc",
  ".bash_profile",
  ".zshrc",
  ".zprofile",
  ".profile",
  ".gitconfig",
  ".gitmodules",
  ".ripgreprc",
  ".VSCode",
];

test.for([...NEW_PATHS, ...NEW_FILES])("a new %s is moved to quarantine, at the top and deep down", async (name) => {
  const { guard } = await startGuard();
  await put(name);
  await put(`some/where/deep/${name}`, "deep\n");
  const violations = await guard.sweep({ isLast: false });
  const first = name.startsWith(".github/") ? ".github/workflows" : (name.split("/")[0] ?? "");
  expect(names(violations)).toEqual([first, `some/where/deep/${first}`].toSorted());
  for (const { path, quarantinedTo } of violations) {
    expect(existsSync(path)).toBe(false);
    expect(quarantinedTo?.startsWith(join(base, "quarantine"))).toBe(true);
    expect(existsSync(quarantinedTo ?? "")).toBe(true);
  }
  expect(await guard.sweep({ isLast: false })).toEqual([]);
});

test("ordinary work is no violation", async () => {
  git(root, "init", "-q");
  const { guard } = await startGuard();
  await put("src/a.ts");
  await put(".github/ISSUE_TEMPLATE.md");
  await put("docs/claude/settings.json");
  git(root, "add", "-A");
  git(root, "commit", "-qm", "x");
  expect(await guard.sweep({ isLast: false })).toEqual([]);
});

describe("a new repository", () => {
  test("made by git init or clone stays usable", async () => {
    git(root, "init", "-q", join(base, "origin"));
    await writeFile(join(base, "origin/f"), "1\n");
    git(join(base, "origin"), "add", "f");
    git(join(base, "origin"), "commit", "-qm", "one");
    const { guard } = await startGuard();
    git(root, "init", "-q", "fresh");
    git(root, "clone", "-q", join(base, "origin"), "cloned");
    git(root, "clone", "-q", "--bare", join(base, "origin"), "bare.git");
    expect(await guard.sweep({ isLast: false })).toEqual([]);
    await put("cloned/g");
    git(join(root, "cloned"), "add", "g");
    git(join(root, "cloned"), "commit", "-qm", "two");
    git(join(root, "cloned"), "checkout", "-q", "-b", "side");
    git(join(root, "cloned"), "worktree", "add", "-q", "../tree", "HEAD~1");
    expect(await guard.sweep({ isLast: false })).toEqual([]);
    expect(git(join(root, "tree"), "log", "--format=%s")).toBe("one\n");
  });

  test("loses a hook that is not a sample, and nothing else", async () => {
    const { guard } = await startGuard();
    git(root, "init", "-q", "fresh");
    await put("fresh/.git/hooks/pre-commit", "#!/bin/sh\n");
    await chmod(join(root, "fresh/.git/hooks/pre-commit"), 0o755);
    expect(names(await guard.sweep({ isLast: false }))).toEqual(["fresh/.git/hooks/pre-commit"]);
    expect(git(join(root, "fresh"), "status", "--porcelain")).toBe("");
  });

  test("loses a configuration that names a program, also when it is changed later", async () => {
    const { guard } = await startGuard();
    git(root, "init", "-q", "fresh");
    expect(await guard.sweep({ isLast: false })).toEqual([]);
    git(join(root, "fresh"), "config", "user.name", "harmless");
    expect(await guard.sweep({ isLast: false })).toEqual([]);
    await appendFile(join(root, "fresh/.git/config"), "[core]\n\tfsmonitor = /tmp/evil\n");
    expect(names(await guard.sweep({ isLast: false }))).toEqual(["fresh/.git/config"]);
  });

  test("that hides behind another name is judged too", async () => {
    const { guard } = await startGuard();
    git(root, "init", "-q", "--bare", "innocent");
    await appendFile(join(root, "innocent/config"), "[core]\n\tfsmonitor = /tmp/evil\n");
    await put("innocent/hooks/post-checkout");
    expect(names(await guard.sweep({ isLast: false }))).toEqual(["innocent/config", "innocent/hooks/post-checkout"]);
  });

  test("that a .git file or link points to elsewhere is cut off", async () => {
    const { guard } = await startGuard();
    git(root, "init", "-q", join(base, "evil"));
    await put("a/.git", `gitdir: ${join(base, "evil/.git")}\n`);
    await put("b/.git", "gitdir: ../plain\n");
    await mkdir(join(root, "c"));
    await symlink(join(base, "evil/.git"), join(root, "c/.git"));
    await mkdir(join(root, "d/.git"), { recursive: true });
    await put("d/.git/commondir", "../../plain\n");
    expect(names(await guard.sweep({ isLast: false }))).toEqual(["a/.git", "b/.git", "c/.git", "d/.git/commondir"]);
  });
});

test("hooks as a link, and a folder of hooks that did not exist before, are found in an old repository", async () => {
  git(root, "init", "-q", "--template=");
  const { guard } = await startGuard();
  await mkdir(join(root, "mine"));
  await symlink("../mine", join(root, ".git/hooks"));
  expect(names(await guard.sweep({ isLast: false }))).toEqual([".git/hooks"]);
  await put(".git/hooks/pre-push");
  expect(names(await guard.sweep({ isLast: false }))).toEqual([".git/hooks/pre-push"]);
});

test("a folder that was moved away and made anew is found by what it is, not by its name", async () => {
  await put(".github/workflows/ci.yml", "old\n");
  const { guard } = await startGuard();
  await rename(join(root, ".github"), join(root, "aside"));
  await put(".github/workflows/ci.yml", "evil\n");
  const [violation, ...others] = await guard.sweep({ isLast: false });
  expect(others).toEqual([]);
  expect(violation?.path).toBe(join(root, ".github/workflows"));
  expect(await readFile(join(violation?.quarantinedTo ?? "", "ci.yml"), "utf8")).toBe("evil\n");
});

test("a folder moved as a whole keeps its protected parts", async () => {
  await put("packages/a/.vscode/settings.json");
  const { guard } = await startGuard();
  await rename(join(root, "packages"), join(root, "modules"));
  expect(await guard.sweep({ isLast: false })).toEqual([]);
  expect(existsSync(join(root, "modules/a/.vscode/settings.json"))).toBe(true);
});

test("attributes are reported but left in place", async () => {
  const { guard } = await startGuard();
  await put(".gitattributes", "* text=auto\n");
  expect(await guard.sweep({ isLast: false })).toEqual([{ path: join(root, ".gitattributes") }]);
  expect(await guard.sweep({ isLast: false })).toEqual([]);
  await appendFile(join(root, ".gitattributes"), "*.x filter=evil\n");
  expect(await guard.sweep({ isLast: false })).toEqual([{ path: join(root, ".gitattributes") }]);
  expect(existsSync(join(root, ".gitattributes"))).toBe(true);
});

test("12.2: what has a name that is not text is moved to quarantine like the rest", async () => {
  const { guard } = await startGuard();
  execFileSync("bash", ["-c", "mkdir -p $'bad\\xff/.git/hooks' && echo x > $'bad\\xff/.git/hooks/pre-commit'"], {
    cwd: root,
  });
  const [violation, ...others] = await guard.sweep({ isLast: false });
  expect(others).toEqual([]);
  expect(basename(violation?.path ?? "")).toBe("pre-commit");
  expect(await readFile(violation?.quarantinedTo ?? "", "utf8")).toBe("x\n");
});
