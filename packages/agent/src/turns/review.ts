/**
 * The prompt of a review. Changes are named by ids that git has confirmed; the agent reads them inside the sandbox.
 * Here git only looks up names: a diff made outside could run what a hostile repository has configured.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { HeddleError } from "@heddle/protocol";

export type ReviewTarget =
  | { readonly kind: "uncommitted" }
  | { readonly kind: "base"; readonly branch: string }
  | { readonly kind: "commit"; readonly commit: string; readonly title: string | undefined }
  | { readonly kind: "custom" };

const RULES = `You are reviewing a change, not making one. Read the diff, and around it whatever you need to judge it.
Report only defects that the author would want to fix: wrong results, broken callers, lost data, races, leaks, holes in
security, missing tests for risky behaviour. Leave style alone unless it hides a defect. For each finding write one line
"[P0..P3] short title: path:line", then in a sentence or two what happens and when, and how to fix it. P0 stops a
release, P3 is small. The most serious comes first. If there is nothing to report, say so plainly. End with a verdict:
whether the change is correct as it is.`;

export async function reviewPrompt(
  target: ReviewTarget,
  workspace: string,
  instructions: string | undefined,
): Promise<string> {
  const more = instructions === undefined ? "" : `\n\nWhat the author asks for:\n${instructions}`;
  return `${await whatToReview(target, workspace)}\n\n${RULES}${more}`;
}

export function reviewSubject(target: ReviewTarget, instructions: string | undefined): string {
  switch (target.kind) {
    case "uncommitted":
      return "current changes";
    case "base":
      return `changes against '${target.branch}'`;
    case "commit":
      return `commit ${target.commit.slice(0, 7)}${target.title === undefined ? "" : `: ${target.title}`}`;
    case "custom":
      return (instructions ?? "").trim().slice(0, 200);
  }
}

async function whatToReview(target: ReviewTarget, workspace: string): Promise<string> {
  switch (target.kind) {
    case "uncommitted":
      await git(workspace, ["rev-parse", "--git-dir"], "review needs a git repository");
      return (
        "Review the changes in this working tree that are not committed: staged, unstaged and untracked. " +
        "See them with `git status --short`, `git diff HEAD`, and by reading the untracked files."
      );
    case "base": {
      const tip = await commitId(workspace, target.branch, "--base");
      const left = await git(
        workspace,
        ["merge-base", "HEAD", tip],
        `--base ${target.branch} has no commit in common with HEAD`,
      );
      return `Review the changes since branch ${target.branch} was left at ${left}. See them with \`git diff ${left}\`.`;
    }
    case "commit": {
      const id = await commitId(workspace, target.commit, "--commit");
      const title = target.title === undefined ? "" : ` ("${target.title}")`;
      return `Review the changes of commit ${id}${title}. See them with \`git show ${id}\`.`;
    }
    case "custom":
      return "Review the code as the author asks below.";
  }
}

function commitId(workspace: string, name: string, flag: string): Promise<string> {
  return git(
    workspace,
    ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`],
    `${flag} ${name} is not a commit of the repository at ${workspace}`,
  );
}

const GIT_MS = 10_000;

async function git(workspace: string, args: readonly string[], otherwise: string): Promise<string> {
  const safe = ["-C", workspace, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
  try {
    const { stdout } = await promisify(execFile)("git", [...safe, ...args], { timeout: GIT_MS });
    return stdout.trim();
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    throw new HeddleError("usage.invalid", isMissing ? "review needs git; install it" : otherwise, { cause: error });
  }
}
