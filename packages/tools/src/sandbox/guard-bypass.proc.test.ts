/** 12.2: ways to plant a protected path unseen, each held by a rule and not by its name. See docs/inside/sandbox-attacks.md. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { appendFile, chmod, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { EVIL_CONFIG, git, openGuardWorld, type GuardWorld } from "../../test/guard-world.ts";

let world: GuardWorld;
let base: string;
let root: string;
let put: GuardWorld["put"];

beforeEach(async () => {
  world = await openGuardWorld();
  ({ base, root, put } = world);
});

afterEach(async () => {
  await world[Symbol.asyncDispose]();
});

async function plantRepository(folder: string): Promise<void> {
  git(root, "init", "-q", "--bare", folder);
  await appendFile(join(root, folder, "config"), EVIL_CONFIG);
}

describe("12.2: no folder hides what is below it", () => {
  test("a folder that git takes for a repository", async () => {
    const { look } = await world.start();
    for (const name of ["objects", "refs"]) await mkdir(join(root, "lib", name), { recursive: true });
    await put("lib/HEAD", "ref: refs/heads/main\n");
    await put("lib/.vscode/tasks.json");
    await put("lib/deep/.claude/settings.json");
    await put("lib/refs/deep/.envrc");
    await put("lib/deep/in/.git/hooks/pre-commit");
    await put("lib/opencode.json");
    expect(await look()).toEqual([
      "lib/.vscode",
      "lib/deep/.claude",
      "lib/deep/in/.git/hooks/pre-commit",
      "lib/opencode.json",
      "lib/refs/deep/.envrc",
    ]);
  });

  test.for([".git/worktrees/x/deep", ".git/objects/.git/modules/e", ".git/objects/ab/x", ".git/hooks.sample/x"])(
    "%s, to which a .git file elsewhere leads",
    async (gitFolder) => {
      git(root, "init", "-q");
      const { look } = await world.start();
      await plantRepository(gitFolder);
      await put("sub/.git", `gitdir: ../${gitFolder}\n`);
      expect(await look()).toEqual([`${gitFolder}/config`]);
    },
  );

  test("a folder of samples among the hooks, and attributes that are a folder", async () => {
    git(root, "init", "-q", "--template=", "new");
    const { look } = await world.start();
    await put("new/.git/hooks/a.sample/.vscode/tasks.json");
    await put(".gitattributes/sub/.envrc");
    expect(await look()).toEqual([".gitattributes/sub/.envrc", "new/.git/hooks/a.sample"]);
  });

  test("HEAD and commondir alone make a repository of whatever commondir names", async () => {
    const { look } = await world.start();
    await put("evil/config", EVIL_CONFIG);
    for (const name of ["objects", "refs"]) await mkdir(join(root, "evil", name));
    await put("a/HEAD", "ref: refs/heads/main\n");
    await put("a/commondir", "../evil\n");
    await put("a/config.worktree", EVIL_CONFIG);
    await put("a/hooks/pre-commit");
    await put("b/HEAD", "ref: refs/heads/main\n");
    await put("b/commondir", "../evil\n");
    expect(await look()).toEqual(["a/commondir", "a/config.worktree", "a/hooks/pre-commit", "b/commondir"]);
  });

  test("a branch may be called like a protected file", async () => {
    git(root, "init", "-q");
    await put("f");
    git(root, "add", "-A");
    git(root, "commit", "-qm", "x");
    const { look } = await world.start();
    git(root, "checkout", "-q", "-b", "opencode.json");
    git(root, "commit", "-q", "--allow-empty", "-m", "y");
    expect(await look()).toEqual([]);
    await put(".git/refs/heads/x/opencode.json", "{}");
    await put(".git/refs/heads/y/opencode.json/tasks.json");
    expect(await look()).toEqual([".git/refs/heads/x/opencode.json", ".git/refs/heads/y/opencode.json"]);
  });
});

test("12.2: a folder of the owner's does not become a repository, and loses nothing of its own", async () => {
  await put("src/hooks/use-thing.ts");
  await put("src/config/a.ts");
  await symlink("hooks", join(root, "src/link"));
  const { look } = await world.start();
  for (const name of ["objects", "refs"]) await mkdir(join(root, "src", name));
  await put("src/HEAD", "ref: refs/heads/main\n");
  expect(await look()).toEqual(["src/HEAD"]);
  expect((await readdir(join(root, "src"))).toSorted()).toEqual(["config", "hooks", "link", "objects", "refs"]);
  expect(await look()).toEqual([]);
});

test("12.2: a repository of the owner's that is made none is told: its hooks are not git's any more", async () => {
  git(root, "init", "-q", "--bare", "bare");
  const { look } = await world.start();
  await rm(join(root, "bare/HEAD"));
  expect(await look()).toEqual(["bare"]);
  expect(await look()).toEqual([]);
});

describe("12.2: a pointer leads nowhere but to what is under guard", () => {
  test("by itself, through a link, and with white space that git does not ignore", async () => {
    const { look } = await world.start();
    git(root, "init", "-q", "inside");
    git(root, "init", "-q", join(base, "outside"));
    await put("a/.git", `gitdir: ${join(base, "outside/.git")}\n`);
    await symlink(base, join(root, "link"));
    await put("b/.git", "gitdir: ../link/outside/.git\n");
    await symlink("inside", join(root, "own"));
    await put("c/.git", "gitdir: ../own/.git\n");
    await symlink(join(base, "outside/.git"), join(root, "inside/.git "));
    await put("d/.git", "gitdir: ../inside/.git \n");
    await put("e/.git", "gitdir: ../inside/.git\n");
    expect(await look()).toEqual(["a/.git", "b/.git", "c/.git", "d/.git"]);
  });

  test("also when what it leads to is replaced later", async () => {
    const { look } = await world.start();
    git(root, "init", "-q", join(base, "outside"));
    await mkdir(join(root, "store"));
    git(root, "init", "-q", "--separate-git-dir", join(root, "store/gd"), "work");
    expect(await look()).toEqual([]);
    await rename(join(root, "store"), join(root, "store2"));
    await mkdir(join(root, "store"));
    await symlink(join(base, "outside/.git"), join(root, "store/gd"));
    expect(await look()).toEqual(["work/.git"]);
  });

  test("also the owner's, when what it leads to is replaced", async () => {
    git(root, "init", "-q", join(base, "outside"));
    await mkdir(join(root, "store"));
    git(root, "init", "-q", "--separate-git-dir", join(root, "store/gd"), "work");
    const { look } = await world.start();
    await rename(join(root, "store"), join(root, "store2"));
    expect(await look()).toEqual([]);
    await mkdir(join(root, "store"));
    await symlink(join(base, "outside/.git"), join(root, "store/gd"));
    expect(await look()).toEqual(["work/.git"]);
  });

  test("a work tree elsewhere", async () => {
    const { look } = await world.start();
    git(root, "init", "-q", "a");
    await mkdir(join(root, "tree"));
    for (const worktree of [base, "../../tree"]) {
      git(join(root, "a"), "config", "core.worktree", worktree);
      expect(await look()).toEqual(["a/.git/config"]);
    }
  });
});

describe("12.2: in a git folder there are files and folders", () => {
  test("a link or a pipe in it is taken away, wherever it is", async () => {
    git(root, "init", "-q");
    await put("f");
    git(root, "add", "-A");
    git(root, "commit", "-qm", "x");
    const { look } = await world.start();
    await writeFile(join(base, "precious"), "owner's\n");
    await rm(join(root, ".git/logs/HEAD"));
    await symlink(join(base, "precious"), join(root, ".git/logs/HEAD"));
    await symlink(base, join(root, ".git/objects/pack/x"));
    await symlink(join(base, "precious"), join(root, `.git/${"n".repeat(250)}`));
    execFileSync("mkfifo", [join(root, ".git/refs/heads/wait")]);
    await rm(join(root, ".git/HEAD"));
    await symlink(join(base, "precious"), join(root, ".git/HEAD"));
    expect(await look()).toEqual(
      [
        ".git/HEAD",
        ".git/logs/HEAD",
        `.git/${"n".repeat(250)}`,
        ".git/objects/pack/x",
        ".git/refs/heads/wait",
      ].toSorted(),
    );
    await symlink("refs/heads/master", join(root, ".git/HEAD"));
    expect(await look()).toEqual([]);
    git(root, "commit", "-q", "--allow-empty", "-m", "y");
    expect(await readFile(join(base, "precious"), "utf8")).toBe("owner's\n");
  });

  test("links outside of it stay", async () => {
    git(root, "init", "-q");
    const { look } = await world.start();
    await symlink("/etc/hosts", join(root, "link"));
    expect(await look()).toEqual([]);
  });

  test("a rebase that waits must not run anything when it continues", async () => {
    git(root, "init", "-q");
    const { look } = await world.start();
    await put(".git/rebase-merge/git-rebase-todo", "pick abc one\n\texec touch /tmp/evil\n");
    expect(await look()).toEqual([".git/rebase-merge/git-rebase-todo"]);
    await put(".git/rebase-merge/git-rebase-todo", "pick abc exec\n");
    expect(await look()).toEqual([]);
  });
});

describe("12.2: what cannot be looked into", () => {
  test("is opened and looked into", async () => {
    const { look } = await world.start();
    for (const mode of [0o000, 0o400, 0o300, 0o555]) {
      await put("a/b/.vscode/tasks.json");
      await put("a/b/c/.envrc");
      for (const folder of ["a/b/.vscode", "a/b/c", "a/b", "a"]) await chmod(join(root, folder), mode);
      expect(await look()).toEqual(["a/b/.vscode", "a/b/c/.envrc"]);
      await chmod(join(root, "a/b"), 0o700);
    }
  });

  test("and was closed before is mounted", async () => {
    await put("closed/.envrc");
    await chmod(join(root, "closed"), 0o000);
    const { look, protectedPaths } = await world.start();
    expect(protectedPaths).toEqual([join(root, "closed")]);
    expect(await look()).toEqual([]);
  });

  test("because it lies too deep is taken away", async () => {
    const { guard, look } = await world.start();
    const name = "d".repeat(250);
    const script = `for (let i = 0; i < 18; i += 1) { fs.mkdirSync("${name}"); process.chdir("${name}"); } fs.writeFileSync(".envrc", "x")`;
    execFileSync(process.execPath, ["-e", script], { cwd: root });
    const [violation, ...others] = await guard.sweep({ isLast: false });
    expect(others).toEqual([]);
    expect(violation?.path.length).toBeLessThan(3500);
    expect(existsSync(violation?.quarantinedTo ?? "")).toBe(true);
    expect(await look()).toEqual([]);
  });
});

test("12.2: what the owner's git configuration runs or reads in the workspace is protected too", async () => {
  git(root, "init", "-q");
  git(root, "config", "core.hooksPath", ".githooks");
  git(root, "config", "include.path", "../settings/git.inc");
  git(root, "config", "alias.t", "!tools/t.sh");
  git(root, "config", "alias.readme", "!cat readme.md");
  await put(".githooks/pre-commit");
  await put("tools/t.sh");
  await put("readme.md");
  const { look, protectedPaths } = await world.start();
  expect(protectedPaths.map((path) => path.slice(root.length + 1)).toSorted()).toEqual([
    ".git/config",
    ".git/hooks",
    ".git/info",
    ".githooks",
    "tools/t.sh",
  ]);
  await put("settings/git.inc", EVIL_CONFIG);
  expect(await look()).toEqual(["settings/git.inc"]);
});

const hasPython = spawnSync("python3", ["-c", "import mmap"]).status === 0;

test.runIf(hasPython)(
  "12.2: a file that is changed through a mapping is found at the last look (needs python3)",
  async () => {
    const { look } = await world.start();
    git(root, "init", "-q", "new");
    const file = join(root, "new/.git/config");
    await appendFile(file, "#".repeat(100));
    const script =
      "import mmap,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nm[-1:]=b'#'\nprint(flush=True)\nsys.stdin.readline()\nm[-100:]=b'\\n[core]\\n\\tfsmonitor = /tmp/evil\\n'.ljust(100,b'\\n')\n";
    const mapping = spawn("python3", ["-c", script, file], { stdio: ["pipe", "pipe", "inherit"] });
    await new Promise((resolve) => mapping.stdout.once("data", resolve));
    await look();
    const ended = new Promise((resolve) => mapping.once("exit", resolve));
    mapping.stdin.end("\n");
    await ended;
    expect(await look({ isLast: true })).toEqual(["new/.git/config"]);
  },
);

describe("12.2: honest work with git continues", () => {
  beforeEach(async () => {
    git(root, "init", "-q", join(base, "origin"));
    await writeFile(join(base, "origin/f"), "1\n");
    git(join(base, "origin"), "add", "f");
    git(join(base, "origin"), "commit", "-qm", "one");
  });

  test("clone, worktree, stash, sparse checkout, rebase, a git folder apart, bare, gc, reftable where there is one", async () => {
    const { look } = await world.start();
    git(root, "clone", "-q", join(base, "origin"), "c");
    const c = join(root, "c");
    git(c, "worktree", "add", "-q", "-b", "side", "../tree");
    await put("tree/g");
    git(join(root, "tree"), "add", "g");
    git(join(root, "tree"), "commit", "-qm", "two");
    expect(await look()).toEqual([]);
    await put("c/f", "2\n");
    git(c, "stash", "-q");
    git(c, "stash", "pop", "-q");
    git(c, "commit", "-qam", "three");
    git(c, "rebase", "-q", "side");
    git(c, "sparse-checkout", "set", "x");
    git(root, "clone", "-q", "--shared", join(base, "origin"), "shared");
    git(root, "clone", "-q", "--separate-git-dir", join(root, "store"), join(base, "origin"), "apart");
    git(root, "init", "-q", "--bare", "bare.git");
    spawnSync("git", ["init", "-q", "--ref-format=reftable", "tables"], { cwd: root });
    git(c, "gc", "-q");
    expect(await look()).toEqual([]);
    expect(await look({ isLast: true })).toEqual([]);
    for (const folder of ["c", "tree", "shared", "apart"]) git(join(root, folder), "status");
    git(c, "worktree", "remove", "--force", "../tree");
    expect(await look()).toEqual([]);
  });

  test("a submodule stays one; only the list of submodules, which is protected by its name, is taken away", async () => {
    const { look } = await world.start();
    git(root, "init", "-q", "top");
    git(join(root, "top"), "submodule", "add", "-q", join(base, "origin"), "deep/sub");
    expect(await look()).toEqual(["top/.gitmodules"]);
    git(join(root, "top"), "commit", "-qm", "x");
    expect(git(join(root, "top/deep/sub"), "log", "--format=%s")).toBe("one\n");
    expect(await look()).toEqual([]);
  });
});
