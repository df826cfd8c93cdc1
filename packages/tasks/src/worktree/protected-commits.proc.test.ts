/** 12.4: what comes back from a worktree is held to the paths an agent may not write, whichever way it got into a commit. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openJudgedRepository } from "../../test/judged-repository.ts";
import { openTestHarness, shell, type TestHarness } from "../../test/test-harness.ts";
import { gitFilesAt } from "../git/git-files.ts";
import { objectFolders } from "../git/objects.ts";
import { openOwnGit } from "../git/own-git.ts";
import { protectedInCommits } from "./protected-commits.ts";

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8" }).trim();
}

async function openRepository(command: string): Promise<TestHarness> {
  const t = await openTestHarness({ script: [{ calls: [shell(command)] }, { text: "done" }] });
  git(t.workspace, "init", "--quiet", "--initial-branch=main");
  writeFileSync(join(t.workspace, "readme.txt"), "first\n");
  mkdirSync(join(t.workspace, ".vscode"));
  writeFileSync(join(t.workspace, ".vscode/settings.json"), "{}\n");
  git(t.workspace, "add", "--all");
  git(t.workspace, "commit", "--quiet", "-m", "first");
  return t;
}

async function run(t: TestHarness, merge: "commit" | "patch" | "branch") {
  const { id } = await t.add({
    checks: [{ kind: "file-exists", path: "done.txt" }],
    deliver: ["**"],
    maxNudges: 0,
    worktree: { merge },
  });
  await t.work();
  const [task] = await t.settled(id);
  return task;
}

const GIT = "git -c user.name=a -c user.email=a@localhost";
const BLOB = "b=$(echo evil | git hash-object -w --stdin)";
/** Puts an entry into a commit without a file: mode, object, path. */
const plant = (mode: string, path: string, object = "$b"): string =>
  `touch done.txt; git add done.txt; ${BLOB}; git update-index --add --cacheinfo '${mode},'${object}',${path}'; ${GIT} commit -qm x; git status --short; git reset -q --hard; true`;
/** One that git keeps out of its index: as a tree of its own. */
const plantTree = (name: string): string =>
  `touch done.txt; git add done.txt; ${BLOB}; e=$(printf '100644 blob %s\\ttasks.json\\n' $b | git mktree); t=$( (git ls-tree $(git write-tree); printf '040000 tree %s\\t%s\\n' $e '${name}') | git mktree); git update-ref HEAD $(${GIT} commit-tree -p HEAD -m x $t); true`;

test.for([
  [".vscode/tasks.json", plant("100644", ".vscode/tasks.json")],
  [".husky/pre-commit", plant("100755", ".husky/pre-commit")],
  ["sub/.envrc", plant("100644", "sub/.envrc")],
  [".gitmodules", plant("100644", ".gitmodules")],
  [".github/workflows/ci.yml", plant("100644", ".github/workflows/ci.yml")],
  ["dependency", plant("160000", "dependency", "$(git rev-parse HEAD)")],
  [".VSCode/tasks.json", plant("100644", ".VSCode/tasks.json")],
  [".claude", plant("120000", ".claude")],
  ["link", `ln -s /etc link; git add link; ${plant("100644", "fine.txt")}`],
  [".vscode/settings.json", `git rm -q --cached .vscode/settings.json; ${plant("100644", "fine.txt")}`],
  [
    ".vscode\\\\tasks.json",
    plantTree(".vscode\\tasks.json").replace("040000 tree %s", "100644 blob %s").replace("$e '", "$b '"),
  ],
  [".GIT/tasks.json", plantTree(".GIT")],
  ["../tasks.json", plantTree("..")],
] as const)("12.4: %s made with plumbing is found in the commits", async ([path, command]) => {
  await using fixture = openJudgedRepository({ files: { "readme.txt": "first\n", ".vscode/settings.json": "{}\n" } });
  const owners = [fixture.git("rev-parse", "HEAD")];
  fixture.sh(command);
  const tip = fixture.git("rev-parse", "HEAD");
  const git = join(fixture.workspace, ".git");
  const objects = await objectFolders(gitFilesAt(git), { path: git, at: gitFilesAt });
  const signal = AbortSignal.timeout(60_000);
  await using own = await openOwnGit({ folder: join(fixture.root, "own"), objects, format: "sha1", signal });
  const problem = await protectedInCommits({ git: own, tip, owners });
  expect(problem).toContain(`"${path}"`);
  expect(problem).toContain("let a person make that change");
  expect(await protectedInCommits({ git: own, tip, owners: [tip] })).toBeUndefined();
});

test.for([
  [".vscode/tasks.json", plant("100644", ".vscode/tasks.json"), ["done.txt"]],
  [
    ".vscode/settings.json",
    `git rm -q --cached .vscode/settings.json; ${plant("100644", "fine.txt")}`,
    ["done.txt", "fine.txt"],
  ],
  [".GIT", plantTree(".GIT"), ["done.txt"]],
  [
    ".envrc of an earlier commit",
    `${plant("100644", ".envrc")}; git rm -q --cached .envrc; ${GIT} commit -qm later`,
    ["done.txt"],
  ],
  [
    ".envrc that looks like another commit",
    `touch done.txt; git add done.txt; ${GIT} commit -qm good; good=$(git rev-parse HEAD); ${plant("100644", ".envrc")}; evil=$(git rev-parse HEAD); git replace $evil $good`,
    ["done.txt"],
  ],
] as const)("12.4: %s made with plumbing is not delivered, nor a commit that has it", async ([, command, fresh]) => {
  await using t = await openRepository(command);
  expect(await run(t, "commit")).toMatchObject({ state: "verified", merged: { how: "commit" } });
  const files = git(t.workspace, "ls-tree", "-r", "--name-only", "HEAD").split("\n");
  expect(files.toSorted()).toEqual([".vscode/settings.json", ...fresh, "readme.txt"].toSorted());
  expect(git(t.workspace, "log", "--format=%s", "--all")).toBe("fix\nfirst");
  expect(git(t.workspace, "status", "--porcelain")).toBe("");
});

test("12.4: a protected path in the work itself is not delivered, and says who can", async () => {
  await using t = await openRepository("ln -s .git link; touch done.txt");
  const task = await run(t, "branch");
  expect([task?.state, task?.merged]).toEqual(["paused", undefined]);
  const last = task?.lastCheck?.results.at(-1);
  expect(last).toMatchObject({ name: "merge back", outcome: "failed" });
  expect(last?.message).toContain('"link"');
  expect(last?.message).toContain("let a person make that change");
  expect(git(t.workspace, "branch", "--list", "heddle/*")).toBe("");
});

test("13: a link that leads out of the workspace is left behind, and the rest comes back", async () => {
  await using t = await openRepository("ln -s /etc link; touch done.txt");
  const task = await run(t, "branch");
  expect(task).toMatchObject({ state: "verified", lastCheck: { work: { others: [{ path: "link" }] } } });
  expect(git(t.workspace, "ls-tree", "--name-only", task?.merged?.ref ?? "")).not.toContain("link");
});

test("12.4: a patch says what was judged, not what the agent's repository makes of it", async () => {
  const command = `touch done.txt; git add done.txt; ${GIT} commit -qm good; good=$(git rev-parse HEAD); ${plant("100644", ".envrc")}; evil=$(git rev-parse HEAD); git reset -q --hard $good; git replace $good $evil`;
  await using t = await openRepository(command);
  const task = await run(t, "patch");
  const patch = task?.merged?.ref;
  if (patch !== undefined) expect(execFileSync("cat", [patch], { encoding: "utf8" })).not.toContain(".envrc");
  expect(existsSync(join(t.workspace, ".envrc"))).toBe(false);
});

test("12.4: checks, which are the agent's programs too, cannot put another commit in the place of the judged one", async () => {
  const swap = `#!/bin/sh\n[ -e ../result ] || exit 0\n${BLOB}\ngit update-index --add --cacheinfo 100644,$b,.envrc\n${GIT} commit -qm evil\n`;
  await using t = await openRepository(
    `touch done.txt; printf '${swap.replaceAll("\n", "\\n")}' > check.sh; chmod +x check.sh`,
  );
  const checks = [{ kind: "command" as const, run: "./check.sh" }];
  const { id } = await t.add({ checks, maxNudges: 0, worktree: { merge: "commit" } });
  await t.work();
  await t.settled(id);
  expect(git(t.workspace, "log", "--format=%s", "--all", "--", ".envrc")).toBe("");
  expect(existsSync(join(t.workspace, ".envrc"))).toBe(false);
});

test("12.4: what the owner has is fine as it is, also in a history that begins anew", async () => {
  const anew = `touch done.txt; git add done.txt; t=$(git write-tree); git update-ref HEAD $(${GIT} commit-tree -m x $t); ln -s readme.txt here`;
  await using t = await openRepository(anew);
  expect(await run(t, "branch")).toMatchObject({ state: "verified", merged: { how: "branch" } });
});
