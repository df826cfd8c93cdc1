/** Tasks in trees of their own, with real repositories: how one is made, what comes back and what never does. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { openTestHarness, shell, type TestHarness, type TestHarnessOptions } from "../../test/test-harness.ts";
import type { Collected } from "../owner/collect-folders.ts";
import { collectWorktrees } from "./collect-worktrees.ts";

const exists = { kind: "file-exists", path: "done.txt" } as const;

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8" }).trim();
}

async function openRepository(script: TestHarnessOptions["script"] = [], folder?: string): Promise<TestHarness> {
  const t = await openTestHarness({ script, ...(folder === undefined ? {} : { folder }) });
  git(t.workspace, "init", "--quiet", "--initial-branch=main");
  writeFileSync(join(t.workspace, "readme.txt"), "first\n");
  git(t.workspace, "add", "--all");
  git(t.workspace, "commit", "--quiet", "-m", "first");
  return t;
}

const works = (command: string): TestHarnessOptions["script"] => [{ calls: [shell(command)] }, { text: "done" }];

async function run(t: TestHarness, spec: Partial<TaskSpecInput>) {
  const { id } = await t.add({ checks: [exists], maxNudges: 0, ...spec });
  await t.work();
  const [task] = await t.settled(id);
  if (task === undefined) throw new Error("no task");
  return task;
}

test("13: what other tasks bring back is not there for an agent that works in the folder around Heddle's home", async () => {
  const patch = (path: string): string => `*** Begin Patch\n*** Add File: ${path}\n+forged\n*** End Patch`;
  await using t = await openTestHarness({
    script: [
      { calls: [shell("cat home-worktrees/t/x.patch; echo forged > home-worktrees/t/x.patch; touch done.txt")] },
      { calls: [{ tool: "apply_patch", args: patch("home-worktrees/t/y.patch") }] },
      { text: "done" },
    ],
  });
  const own = join(`${t.home}-worktrees`, "t");
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "x.patch"), "judged\n");
  const { threadId = "", state } = await run(t, { workspace: t.folder });
  expect(state).toBe("verified");
  expect([readFileSync(join(own, "x.patch"), "utf8"), existsSync(join(own, "y.patch"))]).toEqual(["judged\n", false]);
  expect(JSON.stringify(await t.events(threadId))).not.toContain("judged");
});

test("12.1: where a commit has a link in the place of the task's folder, nothing is made behind it", async () => {
  await using t = await openRepository();
  const outside = mkdtempSync(join(t.workspace, "..", "outside-"));
  symlinkSync(outside, join(t.workspace, "sub"));
  git(t.workspace, "add", "--all");
  git(t.workspace, "commit", "--quiet", "-m", "a link");
  rmSync(join(t.workspace, "sub"));
  mkdirSync(join(t.workspace, "sub", "deep"), { recursive: true });
  const task = await run(t, { workspace: join(t.workspace, "sub", "deep"), worktree: { merge: "branch" } });
  expect(task.state).not.toBe("verified");
  expect(existsSync(join(outside, "deep"))).toBe(false);
});

test("work in a worktree comes back as a branch, and the workspace stays as it was", async () => {
  await using t = await openRepository(works("echo x > done.txt && git status --short"));
  const task = await run(t, { name: "Fix it!", worktree: { merge: "branch" } });
  expect(task).toMatchObject({ state: "verified", merged: { how: "branch" } });
  expect(task.merged?.ref).toMatch(/^heddle\/fix-it-[0-9a-f]{8}$/);
  expect(existsSync(join(t.workspace, "done.txt"))).toBe(false);
  expect(git(t.workspace, "show", `${task.merged?.ref}:done.txt`)).toBe("x");
  expect(git(t.workspace, "status", "--porcelain")).toBe("");
});

test("what the agent committed itself comes back too", async () => {
  await using t = await openRepository(
    works("echo x > done.txt; git add -A; git -c user.name=a -c user.email=a@localhost commit -qm 'by the agent'"),
  );
  const task = await run(t, { worktree: { merge: "branch" } });
  expect(task.state).toBe("verified");
  expect(git(t.workspace, "log", "-1", "--format=%s", task.merged?.ref ?? "")).toBe("by the agent");
});

test("as a commit it lands on the branch that is checked out, also when that has moved on", async () => {
  await using t = await openRepository(works("echo x > done.txt"));
  const base = git(t.workspace, "rev-parse", "HEAD");
  writeFileSync(join(t.workspace, "other.txt"), "other\n");
  git(t.workspace, "add", "--all");
  git(t.workspace, "commit", "--quiet", "-m", "other");
  const task = await run(t, { worktree: { merge: "commit", base } });
  const head = git(t.workspace, "rev-parse", "HEAD");
  expect(task).toMatchObject({ state: "verified", merged: { how: "commit", ref: head } });
  expect(readFileSync(join(t.workspace, "done.txt"), "utf8")).toBe("x\n");
  expect(readFileSync(join(t.workspace, "other.txt"), "utf8")).toBe("other\n");
});

test("where the sandbox lets it be seen, the repository's objects are read where they are and cannot be changed", async () => {
  const folder = mkdtempSync(join(homedir(), ".heddle-worktree-"));
  try {
    const objects = join(folder, "workspace", ".git", "objects");
    await using t = await openRepository(works(`rm -rf ${objects}; git log --format=%s > done.txt`), folder);
    const task = await run(t, { worktree: { merge: "branch" } });
    expect(task.state).toBe("verified");
    expect(git(t.workspace, "show", `${task.merged?.ref}:done.txt`)).toBe("first");
    git(t.workspace, "fsck", "--strict");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("13: work that does not join with what the repository has now waits for the owner, not for the agent", async () => {
  await using t = await openRepository(works("echo mine > readme.txt; touch done.txt"));
  const base = git(t.workspace, "rev-parse", "HEAD");
  writeFileSync(join(t.workspace, "readme.txt"), "theirs\n");
  git(t.workspace, "commit", "--quiet", "-am", "theirs");
  const task = await run(t, { worktree: { merge: "commit", base }, deliver: ["*.txt"], maxNudges: 3 });
  expect([task.state, task.merged]).toEqual(["paused", undefined]);
  expect(task.lastCheck?.results.at(-1)).toMatchObject({ name: "merge back", outcome: "failed" });
  expect(task.lastCheck?.results.at(-1)?.message).toContain("readme.txt");
  expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("theirs\n");
  expect(task.lastCheck?.review).toMatchObject({ reasons: [{ kind: "delivery" }] });
  git(t.workspace, "reset", "--quiet", "--hard", base);
  await t.tasks.resume(task.id);
  expect(await t.settled(task.id)).toMatchObject([{ state: "verified", round: 1, merged: { how: "commit" } }]);
  expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("mine\n");
});

test("13: what is not committed in the workspace is never walked over; when it is gone the work comes back without a turn", async () => {
  await using t = await openRepository(works("echo mine > readme.txt; touch done.txt"));
  writeFileSync(join(t.workspace, "readme.txt"), "being edited\n");
  const task = await run(t, { worktree: { merge: "commit" }, deliver: ["*.txt"], maxNudges: 3 });
  expect(task.state).toBe("paused");
  expect(task.reason).toContain(`heddle task resume ${task.id}`);
  expect(task.reason).toContain("readme.txt");
  expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("being edited\n");
  git(t.workspace, "checkout", "--quiet", "readme.txt");
  await t.tasks.resume(task.id);
  expect(await t.settled(task.id)).toMatchObject([{ state: "verified", round: 1 }]);
  expect(readFileSync(join(t.workspace, "readme.txt"), "utf8")).toBe("mine\n");
});

test("as a patch it lies beside the worktree and applies to the workspace, byte for byte", async () => {
  // Not UTF-8, and blanks at its end.
  await using t = await openRepository(works("printf 'caf\\351\\n  \\n \\n' > done.txt"));
  const task = await run(t, { worktree: { merge: "patch" } });
  expect(task).toMatchObject({ state: "verified", merged: { how: "patch" } });
  git(t.workspace, "apply", task.merged?.ref ?? "");
  expect(readFileSync(join(t.workspace, "done.txt"), "latin1")).toBe("caf\u00E9\n  \n \n");
});

test("a file that git leaves out does not count: the checks are run again on what comes back", async () => {
  await using t = await openRepository(works("touch done.txt other.txt"));
  writeFileSync(join(t.workspace, ".gitignore"), "done.txt\n");
  git(t.workspace, "add", "--all");
  git(t.workspace, "commit", "--quiet", "-m", "rules");
  const task = await run(t, { worktree: { merge: "branch" }, deliver: ["*.txt"] });
  expect(task.state).toBe("paused");
  expect(task.lastCheck).toMatchObject({ passed: false });
  expect(task.lastCheck?.results.at(-1)?.name).toContain("on what comes back");
  expect(git(t.workspace, "branch", "--list", "heddle/*")).toBe("");
});

test("13: what the agent tells git to leave out comes back all the same, because the rules of the beginning count", async () => {
  await using t = await openRepository(works("echo done.txt > .gitignore; touch done.txt"));
  const task = await run(t, { worktree: { merge: "branch" } });
  expect(task).toMatchObject({ state: "verified", merged: { how: "branch" } });
  expect(git(t.workspace, "ls-tree", "--name-only", task.merged?.ref ?? "")).toBe("done.txt\nreadme.txt");
});

test("the setup runs before the first prompt, and its failure is the task's, with what it printed", async () => {
  await using t = await openRepository(works("cp made.txt done.txt"));
  expect(await run(t, { worktree: { setup: "echo made > made.txt; echo made.txt > .gitignore" } })).toMatchObject({
    state: "verified",
  });
  await using u = await openRepository([]);
  const failed = await run(u, { worktree: { setup: "echo cannot install; exit 3" }, retries: { max: 0 } });
  expect(failed).toMatchObject({ state: "failed", failure: { code: "task.setup-failed" }, spent: { turns: 0 } });
  expect(failed.failure?.message).toContain("cannot install");
});

test("a workspace without a repository has no worktree, and says what to do", async () => {
  await using t = await openTestHarness({ script: [] });
  const task = await run(t, { worktree: {}, retries: { max: 0 } });
  expect(task).toMatchObject({ state: "failed", failure: { code: "task.setup-failed" } });
  expect(task.failure?.message).toContain("git init");
});

test("two tasks of one repository work at once, each in its own tree", async () => {
  await using t = await openRepository([
    { calls: [shell("echo a > done.txt")] },
    { calls: [shell("echo a > done.txt")] },
    { text: "done" },
    { text: "done" },
  ]);
  const specs = [await t.add({ checks: [exists], worktree: {} }), await t.add({ checks: [exists], worktree: {} })];
  await t.work();
  const ended = await t.settled(...specs.map(({ id }) => id));
  expect(ended.map(({ state }) => state)).toEqual(["verified", "verified"]);
  expect(new Set(ended.map(({ folder }) => folder)).size).toBe(2);
});

test("worktrees are removed by rule: never while in use, changed or ahead; a dry run removes nothing", async () => {
  await using t = await openRepository(works("echo x > done.txt"));
  const task = await run(t, { worktree: { merge: "branch" } });
  const collect = (more: {
    readonly isDryRun: boolean;
    readonly olderThanMs?: number;
  }): Promise<readonly Collected[]> =>
    collectWorktrees({
      journal: t.heddle.journal,
      home: t.home,
      olderThanMs: 0,
      now: () => Date.now() + 1000,
      signal: AbortSignal.timeout(60_000),
      ...more,
    });
  const folder = task.folder ?? "";
  expect(await collect({ isDryRun: false, olderThanMs: 60_000 })).toMatchObject([{ outcome: "kept" }]);
  expect(await collect({ isDryRun: true })).toMatchObject([{ taskId: task.id, outcome: "would-remove" }]);
  writeFileSync(join(folder, "left.txt"), "x");
  expect(await collect({ isDryRun: false })).toMatchObject([
    { outcome: "kept", reason: "it has changes that are not committed" },
  ]);
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "-m", "ahead");
  expect(await collect({ isDryRun: false })).toMatchObject([
    { outcome: "kept", reason: "it has commits that its repository does not have" },
  ]);
  git(t.workspace, "fetch", "--quiet", folder, "HEAD:refs/heads/kept");
  expect(existsSync(folder)).toBe(true);
  expect(await collect({ isDryRun: false })).toMatchObject([{ outcome: "removed" }]);
  expect(existsSync(folder)).toBe(false);
  expect(await collect({ isDryRun: false })).toEqual([]);
});

test("13: a worktree whose commits came back as one is collected", async () => {
  const commit = "git add -A && git -c user.name=A -c user.email=a@example.org commit -qm";
  await using t = await openRepository(
    works(`touch half.txt; ${commit} 1; rm half.txt; echo x > done.txt; ${commit} 2`),
  );
  const task = await run(t, { worktree: { merge: "branch" }, deliver: ["done.txt"] });
  expect(task.state).toBe("verified");
  const tip = git(task.folder ?? "", "rev-parse", "HEAD");
  expect(() => git(t.workspace, "cat-file", "-e", tip), "they stayed behind").toThrow();
  const collect = { journal: t.heddle.journal, home: t.home, olderThanMs: 0, isDryRun: false };
  const signal = AbortSignal.timeout(60_000);
  expect(await collectWorktrees({ ...collect, now: () => Date.now() + 1000, signal })).toMatchObject([
    { taskId: task.id, outcome: "removed" },
  ]);
});

test("12.1: verified work on a branch is merged by its owner, once, and only as it was judged", async () => {
  await using t = await openRepository(works("echo work > done.txt"));
  const task = await run(t, { worktree: {} });
  expect(task).toMatchObject({ state: "verified", merged: { how: "branch" } });
  // The owner goes on meanwhile.
  writeFileSync(join(t.workspace, "mine.txt"), "mine\n");
  git(t.workspace, "add", "--all");
  git(t.workspace, "commit", "--quiet", "-m", "mine");
  const { signal } = new AbortController();
  const merged = await t.tasks.merge(task.id, { signal });
  expect(merged).toMatchObject({ state: "verified", merged: { how: "commit" } });
  expect(git(t.workspace, "rev-parse", "HEAD")).toBe(merged.merged?.ref);
  expect(readFileSync(join(t.workspace, "done.txt"), "utf8")).toBe("work\n");
  expect(readFileSync(join(t.workspace, "mine.txt"), "utf8")).toBe("mine\n");
  await expect(t.tasks.merge(task.id, { signal })).rejects.toMatchObject({ code: "task.illegal" });
  expect(await t.of(task.id, "task.merged")).toMatchObject([
    { how: "branch" },
    { how: "commit", ref: merged.merged?.ref },
  ]);
  // The branch of a worktree is named after its task.
  await expect(t.tasks.edit(task.id, { name: "other" })).rejects.toMatchObject({ code: "task.illegal" });
});
