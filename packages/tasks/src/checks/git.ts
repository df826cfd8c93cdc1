/**
 * Git checks. Changed files come from the kept and frozen trees; commits and branches are read from the agent's repository,
 * of which only the content of objects is trusted: no index, ignore rule or setting hides anything.
 */
import { HeddleError } from "@heddle/protocol";
import { toText } from "@heddle/tools/raw-path";
import type { JudgedTree } from "../git/find-repository.ts";
import { BEFORE_REFS, readHeadOf, readRepository, type ReadRepository } from "../git/read-repository.ts";
import type { Head } from "../git/refs.ts";
import { committedApart, uncommittedIn } from "../git/uncommitted.ts";
import type { Change } from "../tree/manifest.ts";
import { failed, passed, type CheckContext, type Finding, type RunLeaf } from "./check.ts";
import { globOf } from "./globs.ts";
import { testPatterns } from "./patterns.ts";
import { listed, listedNames, shown } from "./shown.ts";

const MAX_COMMITS = 1_000;

export const git: RunLeaf<"git"> = async (check, context) => {
  const { room } = context;
  const asked = [check.clean, check.commit, check.branch, check.only].filter((one) => one !== undefined);
  if (asked.length === 0) throw new HeddleError("usage.invalid", "give at least one of clean, commit, branch and only");
  const findings: Finding[] = [];
  if (check.only !== undefined) findings.push(judgeOnly(check.only, room.picked));
  const judged: JudgedTree = { ...room, signal: context.signal };
  if (check.only !== undefined) findings.push(...(await judgeCommittedOnly(check.only, judged, context)));
  if (check.branch !== undefined) {
    const head = await readHeadOf(judged);
    if (head === undefined) return nothing();
    findings.push(judgeBranch(check.branch, head));
  }
  if (check.clean !== undefined || check.commit !== undefined) {
    await using read = await readRepository(judged, { began: context.baseline.git?.commit });
    if (read === undefined) return nothing();
    if (check.clean !== undefined) findings.push(await judgeClean(check.clean, judged, read));
    if (check.commit !== undefined) findings.push(await judgeCommit(check.commit, context, read));
  }
  const worst =
    findings.find(({ outcome }) => outcome === "error") ?? findings.find(({ outcome }) => outcome === "failed");
  return worst ?? passed(findings.map(({ message }) => message).join("; "));
};

function nothing(): Finding {
  return failed("the workspace is not a git repository, or has no commit", { isMoot: true });
}

/** Git's own files are checked by their meaning, not as changes. */
function judgeOnly(globs: readonly string[], changes: readonly Change[]): Finding {
  const allowed = globs.map(globOf);
  const changed = changes
    .filter(({ path, now, before }) => path !== ".git" && !path.startsWith(".git/") && [now, before].some(isNoFolder))
    .map(({ path }) => toText(path));
  const outside = changed.filter((path) => !allowed.some(({ matches }) => matches(path)));
  if (outside.length === 0) return passed(`${changed.length} files changed, all within ${listed(globs)}`);
  const message = `changed outside ${listed(globs)}: ${listedNames(outside)}; with deliver: in the spec, what is not part of the work is left out`;
  return failed(message, { output: outside.join("\n") });
}

/** What is committed and not so in the files is handed on all the same. Where the repository is no part of what is judged, it is not. */
async function judgeCommittedOnly(
  globs: readonly string[],
  judged: JudgedTree,
  { baseline: { git: began }, room }: CheckContext,
): Promise<readonly Finding[]> {
  if (began === undefined || !room.picked.some(({ path }) => path.startsWith(".git/"))) return [];
  const head = await readHeadOf(judged);
  if (head === undefined || head.commit === began.commit) return [];
  await using read = await readRepository(judged, { began: began.commit });
  if (read === undefined) return [];
  const allowed = globs.map(globOf);
  const outside = (await committedApart(judged, read))
    .map(toText)
    .filter((path) => !allowed.some(({ matches }) => matches(path)));
  if (outside.length === 0) return [];
  const message = `committed outside ${listed(globs)}, and not so in the files: ${listedNames(outside)}`;
  return [failed(message, { output: outside.join("\n") })];
}

function isNoFolder(entry: Change["now"]): boolean {
  return entry !== undefined && entry.kind !== "folder";
}

async function judgeClean(wanted: boolean, judged: JudgedTree, read: ReadRepository): Promise<Finding> {
  const uncommitted = (await uncommittedIn(judged, read)).map(toText);
  const message = uncommitted.length === 0 ? "nothing is uncommitted" : `uncommitted: ${listedNames(uncommitted)}`;
  return (uncommitted.length === 0) === wanted ? passed(message) : failed(message);
}

function judgeBranch(wanted: string, head: Head): Finding {
  const message = `on branch ${head.branch ?? "(none)"}`;
  return head.branch === wanted ? passed(message) : failed(`${message}, not ${wanted}`);
}

/** New commits are those that no ref of the beginning reaches. */
async function judgeCommit(
  pattern: string,
  { signal }: CheckContext,
  { git: own, head }: ReadRepository,
): Promise<Finding> {
  const format = [`--max-count=${MAX_COMMITS}`, "--format=%B", "-z", "--encoding=UTF-8"];
  const log = await own.run(["log", ...format, head.commit, "--not", `--glob=${BEFORE_REFS}*`, "--"]);
  const texts = log
    .toString("utf8")
    .split("\0")
    .filter((text) => text !== "");
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
