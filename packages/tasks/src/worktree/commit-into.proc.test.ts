/** 13: a commit comes to the owner's checkout as a whole or not at all, wherever the worker is killed or stopped. */
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import type { TaskRecord } from "@heddle/protocol";
import type { TaskSpecInput } from "@heddle/protocol/tasks";
import { finishPutting } from "../owner/finish-putting.ts";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";

const CHILD = join(inject("children"), "harness-in-child.mjs");
const SPEC: Partial<TaskSpecInput> = {
  worktree: { merge: "commit" },
  deliver: ["**"],
  checks: [{ kind: "contains", path: "done.txt", text: "x" }],
  maxNudges: 0,
};
/** A changed, a removed, a new and a replaced file, a folder that empties, a mode and a link. */
const WORK =
  "echo x > done.txt; echo better > readme.txt; rm old/a.txt; mkdir -p new/deep; echo n > new/deep/n; rm file; mkdir file; echo f > file/in; chmod +x run.sh; ln -s readme.txt link";

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8" }).trim();
}

interface Prepared extends Disposable {
  readonly folder: string;
  readonly workspace: string;
  readonly id: string;
}

async function prepare(): Promise<Prepared> {
  const folder = mkdtempSync(join(tmpdir(), "heddle-commit-"));
  const workspace = join(folder, "workspace");
  await using t = await openTestHarness({ folder });
  git(workspace, "init", "--quiet", "--initial-branch=main");
  mkdirSync(join(workspace, "old"));
  for (const name of ["readme.txt", "old/a.txt", "file", "run.sh", "other.txt"])
    writeFileSync(join(workspace, name), "first\n");
  git(workspace, "add", "--all");
  git(workspace, "commit", "--quiet", "-m", "first");
  // Not committed, and none of the task's business.
  appendFileSync(join(workspace, "other.txt"), "mine\n");
  writeFileSync(join(workspace, "staged.txt"), "staged\n");
  git(workspace, "add", "staged.txt");
  const { id } = await t.add(SPEC);
  return { folder, workspace, id, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

const OWNERS = " M other.txt\nA  staged.txt";

/** Everything that git and the owner can see. */
function look(workspace: string): { readonly log: string; readonly status: string; readonly files: string } {
  const names = readdirSync(workspace, { recursive: true, encoding: "utf8" }).filter(
    (name) => !name.startsWith(".git"),
  );
  const status = execFileSync("git", ["status", "--porcelain"], { cwd: workspace, encoding: "utf8" }).trimEnd();
  const leftovers = readdirSync(join(workspace, ".git")).filter((name) => /lock|heddle/.test(name));
  return {
    log: git(workspace, "log", "--format=%s"),
    status: [status, ...leftovers].join("\n"),
    files: names.toSorted().join(" "),
  };
}

const BEFORE = { log: "first", status: OWNERS, files: "file old old/a.txt other.txt readme.txt run.sh staged.txt" };
const AFTER = {
  log: "fix\nfirst",
  status: OWNERS,
  files: "done.txt file file/in link new new/deep new/deep/n other.txt readme.txt run.sh staged.txt",
};

function strike({ folder, id }: Prepared, failpoint: string): string {
  const env = { ...process.env, HEDDLE_FAILPOINT: failpoint };
  const { signal, status, stderr } = spawnSync(process.execPath, [CHILD, folder, id, WORK], { env, encoding: "utf8" });
  return signal ?? `${status}: ${stderr}`;
}

async function goOn(t: TestHarness, id: string): Promise<TaskRecord | undefined> {
  await t.work();
  return (await t.settled(id))[0];
}

test("13: without a strike the files, the branch and the index are as git would make them", async () => {
  using prepared = await prepare();
  expect(strike(prepared, "")).toBe("0: ");
  expect(git(prepared.workspace, "diff-files", "--name-only")).toBe("other.txt");
  expect(look(prepared.workspace)).toEqual(AFTER);
  expect(git(prepared.workspace, "reflog", "-1", "--format=%gs", "main")).toMatch(/^heddle: put /);
});

const PUTS = [1, 5, 9, 14].map((step) => `tree.during-put@${step}`);

test.each([
  ...["tree.before-intent", "tree.after-intent", "merge.after-lock", "merge.before-move"].map(
    (at) => [at, BEFORE] as const,
  ),
  ...PUTS.map((at) => [at, BEFORE] as const),
  ...["merge.after-move", "merge.after-index", "tree.during-put@19", "tree.before-put-end", "task.before-verdict"].map(
    (at) => [at, AFTER] as const,
  ),
])(
  "13: killed at %s the checkout is whole for whoever looks next, and the task ends verified",
  async (at, expected) => {
    using prepared = await prepare();
    const { folder, workspace, id } = prepared;
    expect(strike(prepared, `${at}=kill`)).toBe("SIGKILL");
    await using t = await openTestHarness({ folder });
    await finishPutting({ journal: t.heddle.journal, home: t.home, log: () => undefined });
    expect(look(workspace), at).toEqual(expected);
    await t.tasks.pause(id);
    const undo = t.tasks.undo(id, { signal: new AbortController().signal });
    const head = git(workspace, "rev-parse", "HEAD");
    await expect(undo).rejects.toThrow(expected === AFTER ? `git revert ${head}` : "nothing of it came back");
    await t.tasks.resume(id);
    const task = await goOn(t, id);
    const merged = { how: "commit", ref: git(workspace, "rev-parse", "HEAD") };
    expect([task?.state, task?.merged], at).toEqual(["verified", merged]);
    expect(look(workspace), at).toEqual(AFTER);
  },
);

test("13: killed again while it is taken back, the checkout is as before all the same", async () => {
  using prepared = await prepare();
  for (const at of ["tree.during-put@14", "tree.during-put@4", "tree.during-put@11"])
    expect(strike(prepared, `${at}=kill`), at).toBe("SIGKILL");
  await using t = await openTestHarness({ folder: prepared.folder });
  await finishPutting({ journal: t.heddle.journal, home: t.home, log: () => undefined });
  expect(look(prepared.workspace)).toEqual(BEFORE);
});

test("13: what the owner writes into a checkout after a kill stays, and everything else is as before", async () => {
  using prepared = await prepare();
  const { folder, workspace } = prepared;
  expect(strike(prepared, "merge.before-move=kill")).toBe("SIGKILL");
  writeFileSync(join(workspace, "readme.txt"), "mine\n");
  rmSync(join(workspace, "run.sh"));
  const lines: string[] = [];
  await using t = await openTestHarness({ folder });
  await finishPutting({ journal: t.heddle.journal, home: t.home, log: (line) => lines.push(line) });
  expect(lines).toEqual([
    `${workspace}: undid the changes that a process was writing there when it ended; readme.txt changed meanwhile and was left as it is: look at it yourself`,
  ]);
  expect(look(workspace)).toEqual({ ...BEFORE, status: ` M other.txt\n M readme.txt\nA  staged.txt` });
});

test.each([
  [
    "another git process holds the index",
    (at: string) => writeFileSync(join(at, ".git", "index.lock"), ""),
    "index.lock",
  ],
  [
    "a merge is not concluded",
    (at: string) => writeFileSync(join(at, ".git", "MERGE_HEAD"), `${git(at, "rev-parse", "HEAD")}\n`),
    "MERGE_HEAD",
  ],
  ["an untracked file is in its place", (at: string) => writeFileSync(join(at, "done.txt"), "mine\n"), "done.txt"],
  ["a change is staged there", (at: string) => (writeFileSync(join(at, "file"), "m"), git(at, "add", "file")), "file"],
] as const)("13: where %s the work waits for the owner, and nothing is changed", async (_what, hinder, named) => {
  using prepared = await prepare();
  const { folder, workspace, id } = prepared;
  hinder(workspace);
  const before = look(workspace);
  expect(strike(prepared, "")).toBe("0: ");
  expect(look(workspace)).toEqual(before);
  await using t = await openTestHarness({ folder });
  const task = await t.tasks.find(id);
  expect(task.state).toBe("paused");
  expect(task.reason).toContain(named);
});

test("13: a worker that is told to stop while files are put there brings the commit to its end", async () => {
  using prepared = await prepare();
  const { folder, workspace, id } = prepared;
  await using t = await openTestHarness({
    folder,
    script: [{ calls: [shell(WORK)] }, { text: "done" }],
  });
  const harness = await t.work();
  while (!existsSync(join(workspace, ".git", "index.lock"))) await new Promise(setImmediate);
  await harness[Symbol.asyncDispose]();
  expect(look(workspace)).toEqual(AFTER);
  const task = await goOn(t, id);
  expect(task).toMatchObject({
    state: "verified",
    merged: { how: "commit", ref: git(workspace, "rev-parse", "HEAD") },
  });
  expect(look(workspace)).toEqual(AFTER);
});
