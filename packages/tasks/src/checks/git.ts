/**
 * What git says of the workspace, asked inside the sandbox with every way to run something else switched off. Files that
 * were told to hide from git (`assume-unchanged`, `skip-worktree`) make the answer worthless and are said so.
 */
import { HeddleError } from "@heddle/protocol";
import { cannot, failed, passed, type CheckContext, type Finding, type RunLeaf } from "./check.ts";
import { whole, isBroken, type Commands } from "./commands.ts";
import { globOf } from "./globs.ts";
import { testPatterns } from "./patterns.ts";
import { listed, shown } from "./shown.ts";

const GIT_MS = 60_000;
const MAX_COMMITS = 1_000;

const QUIET = [
  "--no-optional-locks",
  "--no-pager",
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "core.quotePath=false",
  "-c",
  "diff.external=",
  "-c",
  "safe.directory=*",
] as const;

export const git: RunLeaf<"git"> = async (check, context) => {
  const wishes = [check.clean, check.commit, check.branch, check.only].filter((wish) => wish !== undefined);
  if (wishes.length === 0) throw new HeddleError("usage.invalid", "say at least one of clean, commit, branch and only");
  const head = await readHead(context.commands);
  if (head === undefined) return failed("the workspace is no git repository, or has no commit", { isMoot: true });
  const findings: Finding[] = [];
  if (check.clean !== undefined || check.only !== undefined) {
    const hidden = await hiddenFiles(context.commands);
    if (hidden.length > 0) return cannot(`git was told not to look at ${listed(hidden)}`);
  }
  if (check.clean !== undefined) findings.push(await judgeClean(check.clean, context.commands));
  if (check.branch !== undefined) {
    const message = `on branch ${head.branch ?? "(none)"}`;
    findings.push(head.branch === check.branch ? passed(message) : failed(`${message}, not ${check.branch}`));
  }
  if (check.commit !== undefined) findings.push(await judgeCommit(check.commit, context));
  if (check.only !== undefined) findings.push(await judgeOnly(check.only, context));
  const worst =
    findings.find(({ outcome }) => outcome === "error") ?? findings.find(({ outcome }) => outcome === "failed");
  return worst ?? passed(findings.map(({ message }) => message).join("; "));
};

/** Undefined where there is no repository or no commit. */
export async function readHead(
  commands: Commands,
): Promise<{ readonly commit: string; readonly branch?: string } | undefined> {
  const end = await commands.run(gitCommand(["rev-parse", "--verify", "HEAD"]));
  if (isBroken(end)) throw new HeddleError("tool.failed", `git: ${end.message}`);
  if (end.exitCode !== 0) return undefined;
  const branch = await commands.run(gitCommand(["symbolic-ref", "--quiet", "--short", "HEAD"]));
  const commit = end.text.trim();
  return isBroken(branch) || branch.exitCode !== 0 ? { commit } : { commit, branch: branch.text.trim() };
}

/** What differs from a commit, committed or not, new files included. */
export async function changedSince(commit: string, commands: Commands): Promise<readonly string[]> {
  const tracked = await ask(commands, [
    "diff",
    "--name-only",
    "--no-renames",
    "--no-ext-diff",
    "--relative",
    "-z",
    commit,
    "--",
  ]);
  const fresh = await ask(commands, ["ls-files", "--others", "--exclude-standard", "-z"]);
  return [...new Set([...zeroed(tracked), ...zeroed(fresh)])].toSorted();
}

/** Throws when git does not answer. */
export async function ask(commands: Commands, args: readonly string[]): Promise<string> {
  const end = whole(await commands.run(gitCommand(args)), `git ${args[0] ?? ""}`);
  if (end.exitCode !== 0) {
    throw new HeddleError("tool.failed", `git ${args[0] ?? ""} ended with ${end.exitCode}: ${end.output.trim()}`);
  }
  return end.text;
}

function gitCommand(args: readonly string[]): Parameters<Commands["run"]>[0] {
  return {
    run: ["git", ...QUIET, ...args],
    cwd: ".",
    timeoutMs: GIT_MS,
    network: false,
    env: { GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null", GIT_TERMINAL_PROMPT: "0" },
    onlyStdout: true,
  };
}

/** A lower-case letter is assume-unchanged, S is skip-worktree. */
async function hiddenFiles(commands: Commands): Promise<readonly string[]> {
  const lines = zeroed(await ask(commands, ["ls-files", "-v", "-z"]));
  return lines.filter((line) => /^[a-zS] /.test(line)).map((line) => line.slice(2));
}

async function judgeClean(wanted: boolean, commands: Commands): Promise<Finding> {
  const status = zeroed(
    await ask(commands, ["status", "--porcelain", "--no-renames", "--untracked-files=all", "-z", "--", "."]),
  );
  const message =
    status.length === 0 ? "nothing is uncommitted" : `uncommitted: ${listed(status.map((s) => s.slice(3)))}`;
  return (status.length === 0) === wanted ? passed(message) : failed(message);
}

async function judgeCommit(pattern: string, { baseline, commands, signal }: CheckContext): Promise<Finding> {
  // Without a commit at the beginning every commit is new.
  const range = baseline.git === undefined ? ["HEAD"] : ["HEAD", `^${baseline.git.commit}`];
  const log = await ask(commands, ["log", `--max-count=${MAX_COMMITS}`, "--format=%B", "-z", ...range]);
  const texts = zeroed(log);
  if (texts.length === 0) return failed("there is no new commit since the task began");
  if (pattern === "") return passed(`${texts.length} new commits`);
  const answers = await testPatterns(
    texts.map((text) => ({ source: pattern, flags: "m", text })),
    signal,
  );
  return answers.includes(true)
    ? passed(`a new commit matches /${pattern}/`)
    : failed(`none of ${texts.length} new commits matches /${pattern}/: ${shown(texts[0]?.trim())}`);
}

async function judgeOnly(globs: readonly string[], { baseline, commands, files }: CheckContext): Promise<Finding> {
  if (baseline.git === undefined) return cannot("no commit is known from before the task, so nothing can be compared");
  const allowed = globs.map(globOf);
  const { commit, uncommitted = [] } = baseline.git;
  const hashes = await files.hashes(uncommitted);
  // What was uncommitted when the task began is no change while it stays the same.
  const same = new Set(uncommitted.filter((path) => (hashes.get(path) ?? "") === baseline.files[path]));
  const differing = new Set([...(await changedSince(commit, commands)), ...uncommitted]);
  const changed = [...differing].filter((path) => !same.has(path));
  const outside = changed.filter((path) => !allowed.some(({ matches }) => matches(path)));
  return outside.length === 0
    ? passed(`${changed.length} files changed, all within ${listed(globs)}`)
    : failed(`changed outside ${listed(globs)}: ${listed(outside)}`, { output: outside.join("\n") });
}

function zeroed(text: string): string[] {
  return text.split("\0").filter((part) => part !== "");
}
