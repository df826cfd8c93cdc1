/** 13: what comes back from a worktree is byte for byte what was judged, whatever git or the agent would make of it. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TaskSpec } from "@heddle/protocol/tasks";
import { expect, test } from "vitest";
import { freezeWork } from "../tree/freeze-work.ts";
import { keepTree } from "../tree/keep-tree.ts";
import type { Change } from "../tree/manifest.ts";
import { mergeBack, type BroughtBack } from "./merge-back.ts";
import { openWorktree } from "./open-worktree.ts";

interface Fixture extends AsyncDisposable {
  readonly repository: string;
  git(...args: readonly string[]): string;
  /** The bytes of a file in what came back. */
  bytes(back: BroughtBack, path: string): Buffer;
  /** As an agent, in a fresh worktree, and brought back. */
  work(line: string, options?: WorkOptions): Promise<BroughtBack>;
}

interface WorkOptions {
  readonly merge?: "branch" | "commit" | "patch";
  readonly pick?: (change: Change) => boolean;
}

const ENVIRONMENT = {
  PATH: process.env["PATH"],
  HOME: process.env["HOME"],
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@localhost",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@localhost",
};

function open(files: Readonly<Record<string, string>> = { "a.txt": "a\n" }, below = ""): Fixture {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "heddle-merge-")));
  const repository = join(root, "repository");
  const home = join(root, "home");
  mkdirSync(join(repository, below), { recursive: true });
  const run = (cwd: string, program: string, args: readonly string[]): Buffer =>
    execFileSync(program, args, { cwd, env: ENVIRONMENT, stdio: ["ignore", "pipe", "pipe"] });
  const git: Fixture["git"] = (...args) => run(repository, "git", args).toString("utf8").trim();
  git("init", "-q", "-b", "main");
  for (const [path, content] of Object.entries(files)) writeFileSync(join(repository, path), content);
  git("add", "-A");
  git("commit", "-q", "--allow-empty", "-m", "start");
  let count = 0;
  return {
    repository,
    git,
    bytes: (back, path) => run(repository, "git", ["cat-file", "blob", `${back.merged?.ref}:${path}`]),
    async work(line, { merge = "branch", pick = () => true } = {}) {
      count += 1;
      const signal = AbortSignal.timeout(60_000);
      const workspace = join(repository, below);
      const spec = TaskSpec.parse({ name: "a task", workspace, goal: "do", worktree: { merge } });
      const task = { id: `task_0000000${count}`, spec };
      const { folder } = await openWorktree({ home, task, signal });
      const base = await keepTree(folder, { into: join(home, task.id, "base"), skip: [], signal });
      run(folder, "/bin/sh", ["-ec", line]);
      const frozen = await freezeWork(folder, base, { into: join(home, task.id, "work-1"), skip: [], signal });
      // Nobody looks at the agent's tree from here on.
      rmSync(folder, { recursive: true });
      const work = { base, frozen, picked: frozen.changes.filter(pick) };
      const baseline = { takenAt: 0, folder, tests: {}, boxes: {}, passed: [] } as never;
      return await mergeBack({ checkOptions: { folder, spec, home, signal }, task, baseline, work });
    },
    [Symbol.asyncDispose]: async () => rmSync(root, { recursive: true, force: true }),
  };
}

const isNotGit = ({ path }: Change): boolean => !path.startsWith(".git/");

test("13: line ends, filters and encodings change nothing on the way back", async () => {
  await using fixture = open({ "a.txt": "a\n", "b.crlf": "one\ntwo\n" });
  const line =
    "printf '* text=auto filter=evil ident working-tree-encoding=UTF-16\\n' >> .gitattributes; git config filter.evil.clean 'echo evil'; git config core.autocrlf input; " +
    "printf 'x\\r\\ny\\r\\n' > a.txt; printf 'one\\r\\nthree\\n' > b.crlf; printf '$Id$\\r\\n' > c.id; git add -A; git commit -qm evil";
  const back = await fixture.work(line, { pick: ({ path }) => path !== ".gitattributes" });
  expect(back).toMatchObject({ merged: { how: "branch" }, results: [] });
  expect(fixture.bytes(back, "a.txt").toString()).toBe("x\r\ny\r\n");
  expect(fixture.bytes(back, "b.crlf").toString()).toBe("one\r\nthree\n");
  expect(fixture.bytes(back, "c.id").toString()).toBe("$Id$\r\n");
});

test("13: a worktree has the bytes of its commit, so that an edit changes the edited line alone", async () => {
  await using fixture = open({ "a.txt": "one\ntwo\n", ".gitattributes": "*.bat text eol=crlf\n" });
  const back = await fixture.work("sed -i s/two/three/ a.txt");
  expect(fixture.bytes(back, "a.txt").toString()).toBe("one\nthree\n");
});

test("13: what a checkout of the repository would convert waits for the owner, and nothing comes back", async () => {
  await using fixture = open({
    "a.txt": "a\n",
    ".gitattributes": "*.crlf text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16LE\n",
    "b.crlf": "one\n",
  });
  for (const [merge, line, name] of [
    ["branch", "echo two >> b.crlf; echo '*.other ident' >> .gitattributes", "b.crlf"],
    ["patch", "printf '$Id$\\n' > c.id", "c.id"],
    ["commit", "printf 'h\\0i\\0' > d.u16", "d.u16"],
  ] as const) {
    const back = await fixture.work(`${line}; echo b > a.txt`, { merge });
    expect(back.merged, name).toBeUndefined();
    expect(back.obstacle, name).toContain(`convert ${name} at a checkout`);
  }
  expect(await fixture.work("echo c > a.txt; ln -s a.txt e", { merge: "commit" })).toMatchObject({ results: [] });
});

test("13: line ends that the owner's own rules convert at a checkout are said and stop nothing", async () => {
  await using fixture = open({ "a.txt": "a\n", ".gitattributes": "*.crlf text eol=crlf\n", "b.crlf": "one\n" });
  const message = expect.stringContaining("lines of b.crlf, c.crlf other ends");
  for (const merge of ["branch", "patch", "commit"] as const) {
    const back = await fixture.work(`echo ${merge} >> b.crlf; echo ${merge} > c.crlf`, { merge });
    expect(back, merge).toMatchObject({ merged: { how: merge }, results: [{ outcome: "passed", message }] });
  }
  expect(fixture.git("show", "HEAD:b.crlf")).toBe("one\ncommit");
});

test("13: only what was picked comes back, and the agent's commits stay behind unless they are exactly that", async () => {
  await using fixture = open();
  const both =
    "echo b > b.txt; git add b.txt; git commit -qm 'by the agent'; echo c > c.txt; git add c.txt; git commit -qm more";
  const part = await fixture.work(both, { pick: ({ path }) => path === "b.txt" });
  expect(fixture.git("log", "--format=%s", `main..${part.merged?.ref}`)).toBe("a task");
  expect(fixture.git("ls-tree", "--name-only", part.merged?.ref ?? "")).toBe("a.txt\nb.txt");
  const whole = await fixture.work(both, { pick: isNotGit });
  expect(fixture.git("log", "--format=%s", `main..${whole.merged?.ref}`)).toBe("more\nby the agent");
  const undone = await fixture.work(`${both}; git rm -q c.txt; git commit -qm less`, { pick: isNotGit });
  expect(fixture.git("log", "--format=%s", `main..${undone.merged?.ref}`)).toBe("a task");
});

test("13: names, modes, links and removals come back as they were judged", async () => {
  await using fixture = open({ "a.txt": "a\n", "gone.txt": "g\n", file: "was a file\n" });
  const back = await fixture.work(
    "rm gone.txt file; mkdir file; echo in > file/in; chmod +x a.txt; ln -s a.txt link; printf x > \"$(printf 'caf\\351')\"; printf y > 'tab\there \"q\" \\n'; printf z > ':(top)*'; : > empty",
  );
  const listed = fixture
    .git("ls-tree", "-r", "-z", back.merged?.ref ?? "")
    .split("\0")
    .filter((line) => line !== "");
  const blob = (text: string): string =>
    execFileSync("git", ["hash-object", "--stdin"], { input: text, encoding: "utf8" }).trim();
  const raw = execFileSync("git", ["ls-tree", "-r", "-z", back.merged?.ref ?? ""], {
    cwd: fixture.repository,
    encoding: "latin1",
  });
  expect(raw).toContain(`100644 blob ${blob("x")}\tcaf\u00e9\0`);
  expect(listed).toHaveLength(7);
  expect(listed).toContain(`100755 blob ${blob("a\n")}\ta.txt`);
  expect(listed).toContain(`120000 blob ${blob("a.txt")}\tlink`);
  expect(listed).toContain(`100644 blob ${blob("in\n")}\tfile/in`);
  expect(listed).toContain(`100644 blob ${blob("y")}\ttab\there "q" \\n`);
  expect(listed).toContain(`100644 blob ${blob("z")}\t:(top)*`);
  expect(listed).toContain(`100644 blob ${blob("")}\tempty`);
});

test("13: what git left out at the beginning is not delivered and is said; a new .gitignore hides nothing", async () => {
  await using fixture = open({ "a.txt": "a\n", ".gitignore": "*.log\n" });
  const back = await fixture.work("echo b > b.txt; echo x > x.log; echo b.txt >> .gitignore");
  expect(fixture.git("ls-tree", "--name-only", back.merged?.ref ?? "")).toBe(".gitignore\na.txt\nb.txt");
  expect(back.results).toMatchObject([
    { outcome: "passed", message: "not delivered, because git leaves them out: x.log" },
  ]);
  expect(await fixture.work("echo x > x.log")).toMatchObject({
    results: [{ outcome: "failed", message: expect.stringContaining("git leaves out x.log") }],
  });
});

test("13: a file that a filter of the owner's stores is not delivered in its place", async () => {
  await using fixture = open({ "a.txt": "a\n", ".gitattributes": "*.bin filter=big\n" });
  fixture.git("config", "filter.big.clean", "sha256sum");
  const back = await fixture.work("echo x > x.bin");
  expect(back).toMatchObject({ results: [{ outcome: "failed", message: expect.stringContaining("filter big") }] });
  expect(back.merged).toBeUndefined();
});

test("13: a patch says the bytes that were judged, whatever the agent's attributes call them", async () => {
  await using fixture = open({ "a.txt": "a\n" });
  const back = await fixture.work(
    "printf '* -diff\\n*.txt diff=x\\n' > .gitattributes; git config diff.x.textconv 'echo nothing'; printf 'b\\r\\n' > a.txt",
    { merge: "patch" },
  );
  expect(readFileSync(back.merged?.ref ?? "", "latin1")).toContain("-a\n+b\r\n");
  fixture.git("apply", back.merged?.ref ?? "");
  expect(readFileSync(join(fixture.repository, "a.txt"), "latin1")).toBe("b\r\n");
});

test("13: frozen files that changed after they were judged are not delivered", async () => {
  await using fixture = open();
  const later = fixture.work("echo b > b.txt", {
    pick: (change) => {
      Object.assign(change, { now: { ...change.now, sha256: "0".repeat(64) } });
      return change.path === "b.txt";
    },
  });
  await expect(later).rejects.toMatchObject({ code: "store.failed", message: expect.stringContaining("b.txt") });
  expect(fixture.git("branch", "--list", "heddle/*")).toBe("");
});

test("13: work in a folder of the repository comes back in its place, by the rules above it", async () => {
  await using fixture = open({ "a.txt": "a\n", ".gitignore": "*.log\n" }, "packages/one");
  const back = await fixture.work("echo b > b.txt; echo x > x.log");
  expect(fixture.git("ls-tree", "-r", "--name-only", back.merged?.ref ?? "")).toBe(
    ".gitignore\na.txt\npackages/one/b.txt",
  );
});

test("13: a repository without .git, or with one that cannot be read, has no history to keep, and the work comes back", async () => {
  await using fixture = open();
  for (const line of ["rm -rf .git", "rm -rf .git; echo 'gitdir: /' > .git", "echo garbage > .git/HEAD"]) {
    const back = await fixture.work(`echo b > b.txt; ${line}`);
    expect(fixture.git("log", "--format=%s", `main..${back.merged?.ref}`)).toBe("a task");
  }
});

test("13: a link with the whole path of the worktree is refused, a relative one comes back", async () => {
  await using fixture = open();
  expect(await fixture.work('ln -s "$PWD/a.txt" link')).toMatchObject({
    results: [{ outcome: "failed", message: expect.stringContaining("link; make them relative") }],
  });
  const back = await fixture.work("ln -s a.txt link");
  expect(fixture.bytes(back, "link").toString()).toBe("a.txt");
});
