/** 13: what an agent leaves in its repository to make git say something else has no say in the git check. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openJudgedRepository } from "../../test/judged-repository.ts";

/** A change of a tracked file that is not committed, then whatever hides it from git. */
const HIDES: readonly (readonly [string, string])[] = [
  ["assume-unchanged", "echo x > a.txt; git update-index --assume-unchanged a.txt"],
  ["skip-worktree", "echo x > a.txt; git update-index --skip-worktree a.txt"],
  [
    "a forged index",
    "t=$(stat -c %y a.txt); printf 'z\\n' > a.txt; touch -d \"$t\" a.txt; git config core.trustctime false; git config core.checkStat minimal",
  ],
  ["an index that was removed", "echo x > a.txt; rm .git/index"],
  ["info/exclude", "echo new > new.txt; echo new.txt >> .git/info/exclude"],
  ["a new .gitignore that is ignored itself", "echo new > new.txt; printf 'new.txt\\n.gitignore\\n' > .gitignore"],
  ["core.excludesFile", "echo new > new.txt; echo '*' > .git/ignore-all; git config core.excludesFile .git/ignore-all"],
  [
    "a clean filter",
    "printf 'a.txt filter=back\\n' > .git/info/attributes; git config filter.back.clean 'printf \"a\\\\n\"'; echo x > a.txt; git add a.txt",
  ],
  ["core.fsmonitor", "git config core.fsmonitor true; echo x > a.txt"],
  [
    "core.worktree",
    "mkdir .git/other; cp -r a.txt src .git/other; git config core.worktree $PWD/.git/other; echo x > a.txt",
  ],
  ["core.fileMode", "git config core.fileMode false; chmod +x a.txt"],
  ["a sparse checkout", "git sparse-checkout set --no-cone src; mkdir -p src; echo x > a.txt"],
  [
    "includeIf",
    "printf '[core]\\n\\texcludesFile = .git/ignore-all\\n' > .git/more; echo '*' > .git/ignore-all; git config includeIf.gitdir:$PWD/.path $PWD/.git/more; echo new > new.txt",
  ],
  [
    "a submodule that says ignore",
    "git config submodule.x.ignore all; git config diff.ignoreSubmodules all; echo x > src/b.txt",
  ],
  [
    "git replace",
    "old=$(git rev-parse HEAD); echo x > a.txt; git add a.txt; git commit -qm x; new=$(git rev-parse HEAD); git reset -q --soft $old; git replace $old $new",
  ],
];

test.for(HIDES)("13: %s hides nothing from a git check", async ([, line]) => {
  await using repository = openJudgedRepository();
  await repository.keep();
  repository.sh(line);
  const finding = await repository.check({ clean: true });
  expect(finding).toMatchObject({ outcome: "failed" });
  expect(finding.message).toMatch(/a\.txt|b\.txt|new\.txt/);
});

/** Commits that look new, or messages that no new commit has. */
const POSES: readonly (readonly [string, string])[] = [
  ["git replace", "git replace $(git rev-parse HEAD) $(git commit-tree -m 'feat: x' HEAD^{tree})"],
  ["grafts", "mkdir -p .git/info; echo $(git rev-parse HEAD) > .git/info/grafts"],
  ["a shallow file", "git rev-parse HEAD > .git/shallow"],
  ["an old commit", "git checkout -q --detach HEAD~1"],
  ["a branch of before", "git checkout -q other"],
  ["a tag of before that was unpacked", "git checkout -q --detach v1; git pack-refs --all"],
];

test.for(POSES)("13: %s makes no new commit", async ([, line]) => {
  await using repository = openJudgedRepository();
  repository.git("checkout", "-q", "-b", "other");
  repository.git("commit", "-q", "--allow-empty", "-m", "feat: of before");
  repository.git("tag", "-a", "v1", "-m", "one");
  repository.git("checkout", "-q", "main");
  repository.git("commit", "-q", "--allow-empty", "-m", "second");
  await repository.keep();
  repository.sh(line);
  expect(await repository.check({ commit: "" })).toMatchObject({
    outcome: "failed",
    message: "there is no new commit since the task began",
  });
});

test("13: a new commit counts, whether its objects are loose or in a pack", async () => {
  await using repository = openJudgedRepository();
  await repository.keep();
  repository.write("a.txt", "better\n");
  repository.sh("git checkout -q -b topic/one; git commit -qam 'feat: better'");
  const wanted = { clean: true, commit: "^feat: ", branch: "topic/one" };
  expect(await repository.check(wanted)).toMatchObject({ outcome: "passed" });
  repository.sh("git gc -q --prune=now; git pack-refs --all");
  expect(await repository.check(wanted)).toMatchObject({ outcome: "passed" });
  expect(await repository.check({ branch: "main" })).toMatchObject({ outcome: "failed" });
  expect(await repository.check({ commit: "^fix: " })).toMatchObject({ outcome: "failed" });
});

test("13: an object whose content is not what its name says is not believed", async () => {
  await using repository = openJudgedRepository();
  await repository.keep();
  // A commit for whose tree another tree's content is stored.
  repository.sh(
    "echo x > a.txt; git commit -qam x; t=$(git rev-parse HEAD^{tree}); echo y > a.txt; git add a.txt; w=$(git write-tree); " +
      "f() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }; chmod u+w $(f $t); cp $(f $w) $(f $t)",
  );
  await expect(repository.check({ clean: true })).rejects.toMatchObject({ code: "tool.failed" });
});

test("13: a pack whose index gives its objects the names of others is not believed", async () => {
  await using repository = openJudgedRepository();
  await repository.keep();
  // The index of one pack beside the content of another, under one name.
  repository.sh(
    "echo x > a.txt; git commit -qam x; git gc -q; p=$(ls .git/objects/pack/*.pack); cp $p .git/keep; echo yy > a.txt; git commit -qam yy; " +
      "git repack -qad; q=$(ls .git/objects/pack/*.pack); chmod u+w $q; cp .git/keep $q",
  );
  await expect(repository.check({ clean: true })).rejects.toMatchObject({ code: "tool.failed" });
});

test("13: alternates that the agent planted give no objects", async () => {
  await using repository = openJudgedRepository();
  await repository.keep();
  repository.sh(
    "cp -r .git ../elsewhere.git; echo x > a.txt; git commit -qam x; c=$(git rev-parse HEAD); cp -rf .git/objects/. ../elsewhere.git/objects/; " +
      "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now; echo $PWD/../elsewhere.git/objects > .git/objects/info/alternates; git reset -q --hard $c",
  );
  await expect(repository.check({ commit: "" })).rejects.toMatchObject({ code: "tool.failed" });
});

const POINTERS: readonly (readonly [string, string])[] = [
  ["a file", 'mv .git ../moved.git; echo "gitdir: $PWD/../moved.git" > .git'],
  ["a link", "mv .git ../moved.git; ln -s ../moved.git .git"],
  ["a pipe", "rm -rf .git; mkfifo .git"],
];

test.for(POINTERS)("13: %s in the place of .git leads nowhere", async ([, line]) => {
  await using repository = openJudgedRepository();
  await repository.keep();
  repository.sh(line);
  await expect(repository.check({ clean: true })).rejects.toMatchObject({
    code: "tool.failed",
    message: "the .git of the workspace is not what it was when the task began",
  });
});

test("13: a commondir of the agent's leads nowhere", async () => {
  await using repository = openJudgedRepository();
  await repository.keep();
  repository.sh(
    "cp -r .git ../other.git; git --git-dir ../other.git commit -q --allow-empty -m new; echo ../../other.git > .git/commondir",
  );
  expect(await repository.check({ commit: "" })).toMatchObject({ outcome: "failed" });
});

const HEADS: readonly (readonly [string, string, string])[] = [
  ["as a link to a branch", "git branch topic; rm .git/HEAD; ln -s refs/heads/topic .git/HEAD", "topic"],
  ["as a link elsewhere", "rm .git/HEAD; ln -s /etc/hostname .git/HEAD", ""],
  ["with an odd name", "printf 'ref: refs/heads/../../../x\\n' > .git/HEAD", ""],
  ["that names itself", "printf 'ref: HEAD\\n' > .git/HEAD", ""],
  ["that is a folder", "rm .git/HEAD; mkdir .git/HEAD", ""],
];

test.for(HEADS)("13: a HEAD %s is read strictly", async ([, line, branch]) => {
  await using repository = openJudgedRepository();
  await repository.keep();
  repository.sh(line);
  if (branch !== "") expect(await repository.check({ branch })).toMatchObject({ outcome: "passed" });
  else await expect(repository.check({ branch: "main" })).rejects.toMatchObject({ code: "tool.failed" });
});

test("13: packed refs with odd names are not read", async () => {
  await using repository = openJudgedRepository();
  await repository.keep();
  repository.sh(
    "c=$(git commit-tree -m x HEAD^{tree}); rm -rf .git/refs/heads/main; " +
      "printf '%s refs/heads/main extra\\n%s refs/heads/../main\\n%s  refs/heads/main\\nxx refs/heads/main\\n' $c $c $c > .git/packed-refs",
  );
  expect(await repository.check({ branch: "main" })).toMatchObject({ outcome: "failed", isMoot: true });
});

test("13: programs that a repository names are not run, and its textconv is not asked", async () => {
  await using repository = openJudgedRepository();
  await repository.keep();
  const run = `touch ${join(repository.root, "ran")}`;
  repository.sh(
    `for k in core.fsmonitor core.pager diff.external diff.x.textconv diff.x.command filter.x.clean filter.x.smudge filter.x.process uploadpack.packObjectsHook core.sshCommand gpg.program; do git config $k '${run}'; done; ` +
      `mkdir -p .git/hooks; for h in post-index-change reference-transaction pre-commit; do printf '#!/bin/sh\\n${run}\\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done; ` +
      "printf '* diff=x filter=x\\n' > .gitattributes; echo x > a.txt",
  );
  expect(await repository.check({ clean: true, commit: "" })).toMatchObject({ outcome: "failed" });
  expect(existsSync(join(repository.root, "ran"))).toBe(false);
});

test("13: what was uncommitted at the beginning is no change, and is uncommitted while it stays", async () => {
  await using repository = openJudgedRepository({ files: { "a.txt": "a\n", ".gitignore": "*.log\nbuild/\n" } });
  repository.write("mine.txt", "untracked\n");
  repository.write("a.txt", "being edited\n");
  repository.write("build/out.js", "made");
  await repository.keep();
  expect(await repository.check({ only: ["src/**"] })).toMatchObject({
    outcome: "passed",
    message: "0 files changed, all within src/**",
  });
  const before = await repository.check({ clean: true });
  expect(before).toMatchObject({ outcome: "failed", message: "uncommitted: a.txt, mine.txt" });
  repository.sh("git commit -q --allow-empty -m 'feat: nothing'");
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "failed" });
  repository.sh("git add -A; git commit -qm rest; echo x > new.log; echo y > build/more.js");
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "passed" });
  expect((await repository.check({ only: ["src/**"] })).output).toBe("build/more.js\nnew.log");
});

test("13: a file whose line ends git converts is committed, and one that differs is not", async () => {
  await using repository = openJudgedRepository({
    files: { ".gitattributes": "*.txt text eol=crlf\n", "a.txt": "a\r\nb\r\n" },
  });
  await repository.keep();
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "passed" });
  repository.write("a.txt", "a\r\nc\r\n");
  repository.sh("git commit -qam c");
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "passed" });
  repository.write("a.txt", "a\r\nd\r\n");
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "failed" });
});

test("13: a repository above the workspace is read where it is, and commits are judged although .git is not delivered", async () => {
  await using repository = openJudgedRepository({ below: "packages/one" });
  await repository.keep();
  repository.write("a.txt", "better\n");
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "failed", message: "uncommitted: a.txt" });
  repository.sh("git commit -qam 'feat: better'");
  expect(await repository.check({ clean: true, commit: "^feat", branch: "main" })).toMatchObject({ outcome: "passed" });
  await using whole = openJudgedRepository();
  await whole.keep();
  whole.sh("echo better > a.txt; git commit -qam 'feat: better'");
  const isPicked = ({ path }: { readonly path: string }): boolean => path === "a.txt";
  expect(await whole.check({ commit: "^feat", only: ["a.txt"] }, isPicked)).toMatchObject({ outcome: "passed" });
});

test("13: a shallow clone, and a repository with long object names that began with the task, are read", async () => {
  await using repository = openJudgedRepository();
  repository.git("commit", "-q", "--allow-empty", "-m", "second");
  repository.git("clone", "-q", "--depth=1", `file://${repository.workspace}`, join(repository.root, "shallow"));
  repository.sh("rm -rf .git; cp -r ../shallow/.git .git");
  await repository.keep();
  repository.sh("echo x > a.txt; git commit -qam 'feat: x'");
  expect(await repository.check({ commit: "^feat", clean: true })).toMatchObject({ outcome: "passed" });

  await using fresh = openJudgedRepository();
  fresh.sh("rm -rf .git");
  await fresh.keep();
  expect(await fresh.check({ clean: true })).toMatchObject({ outcome: "failed", isMoot: true });
  fresh.sh("git init -q -b main --object-format=sha256; git add -A; git commit -qm first");
  expect(await fresh.check({ commit: "", clean: true })).toMatchObject({ outcome: "passed" });
});

test("13: a linked work tree is read where its git folder is", async () => {
  await using repository = openJudgedRepository();
  repository.sh(
    "mv .git ../main.git; git --git-dir ../main.git config core.bare true; git --git-dir ../main.git worktree add -q -f ../linked main; mv ../linked/.git .git",
  );
  repository.sh("echo $PWD/.git > ../main.git/worktrees/linked/gitdir; git reset -q");
  await repository.keep();
  expect(await repository.check({ clean: true, branch: "main" })).toMatchObject({ outcome: "passed" });
  expect(await repository.check({ commit: "" })).toMatchObject({ outcome: "failed" });
  repository.sh("echo x > a.txt; git commit -qam 'feat: x'");
  expect(await repository.check({ clean: true, commit: "^feat" })).toMatchObject({ outcome: "passed" });
});

test("13: a repository that the agent makes in the workspace takes nothing from the one above it", async () => {
  await using repository = openJudgedRepository({ below: "packages/one" });
  await repository.keep();
  repository.sh("echo x > a.txt; git init -q -b other .; git add -A; git commit -qm 'feat: x'");
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "failed", message: "uncommitted: a.txt" });
  expect(await repository.check({ commit: "" })).toMatchObject({ outcome: "failed" });
  expect(await repository.check({ branch: "other" })).toMatchObject({ outcome: "failed" });
});

test("15.14: an empty .git is no repository: the one above it counts, and one that is made in it since", async () => {
  await using below = openJudgedRepository({ below: "packages/one" });
  below.sh("mkdir .git");
  await below.keep();
  below.write("a.txt", "better\n");
  expect(await below.check({ clean: true })).toMatchObject({ outcome: "failed", message: "uncommitted: a.txt" });
  await using fresh = openJudgedRepository();
  fresh.sh("rm -rf .git; mkdir .git");
  await fresh.keep();
  expect(await fresh.check({ clean: true })).toMatchObject({ outcome: "failed", isMoot: true });
  fresh.sh("git init -q -b main; git add -A; git commit -qm first");
  expect(await fresh.check({ commit: "", clean: true })).toMatchObject({ outcome: "passed" });
});

test("13: files of a submodule are its own while nothing there changes", async () => {
  await using repository = openJudgedRepository();
  repository.sh(
    "git init -q ../library; git -C ../library commit -q --allow-empty -m one; git -c protocol.file.allow=always submodule --quiet add ../library sub; echo s > sub/s.txt; git -C sub add -A; git -C sub commit -qm two; git add -A; git commit -qm sub",
  );
  await repository.keep();
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "passed" });
  repository.sh("echo x > sub/s.txt; git config submodule.sub.ignore all");
  expect(await repository.check({ clean: true })).toMatchObject({ outcome: "failed", message: "uncommitted: sub" });
});

test.each([
  ["a file that is in no folder any more", "echo x > b.txt; git add b.txt; git commit -qm x; rm b.txt", "b.txt"],
  ["a file that was put back", "echo x > a.txt; git commit -qam x; printf 'a\\n' > a.txt", "a.txt"],
  ["a file that is gone from the commit alone", "git rm -q --cached a.txt; git commit -qm x", "a.txt"],
  ["a mode", "chmod +x a.txt; git commit -qam x; chmod -x a.txt", "a.txt"],
])("13: what is committed lies within `only` too: %s", async (_, lines, path) => {
  await using repository = openJudgedRepository();
  repository.write("notes.txt", "of the beginning, not committed\n");
  await repository.keep();
  repository.sh(`echo work > src/b.txt; ${lines}`);
  expect(await repository.check({ only: ["src/**"] })).toMatchObject({
    outcome: "failed",
    message: `committed outside src/**, and not so in the files: ${path}`,
  });
});

test("13: what was uncommitted at the beginning may be committed as it was, whatever `only` says", async () => {
  await using repository = openJudgedRepository();
  repository.write("notes.txt", "of the beginning, not committed\n");
  repository.write("a.txt", "changed before\n");
  await repository.keep();
  repository.sh("echo work > src/b.txt; git add -A; git commit -qm work");
  expect(await repository.check({ only: ["src/**"] })).toMatchObject({ outcome: "passed" });
});
