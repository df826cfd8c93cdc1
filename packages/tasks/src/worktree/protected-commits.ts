/**
 * Commits that come back must not contain paths an agent may not write. Plumbing can commit anything without a file, so
 * every commit is read: each path in a state that the owner's commits do not have.
 */
import { posix } from "node:path";
import { plainName, protectedPart } from "@heddle/tools/files";
import type { OwnGit } from "../git/own-git.ts";

export interface CommitsToJudge {
  readonly git: OwnGit;
  readonly tip: string;
  /** The owner's commits: what is in one of them may stay. */
  readonly owners: readonly string[];
}

export interface CommittedChange {
  readonly path: string;
  /** As git writes it; 000000: removed. */
  readonly mode: string;
  readonly object: string;
}

const LINK = "120000";
const SUBMODULE = "160000";
/** Each needs a call of git; more are refused. */
const MAX_ASKED = 200;
const SHOWN = 10;

export async function protectedInCommits(commits: CommitsToJudge): Promise<string | undefined> {
  const found = new Set<string>();
  let asked = 0;
  for (const change of await changesIn(commits)) {
    if (!isForbidden(change) && change.mode !== LINK) continue;
    asked += 1;
    if (asked > MAX_ASKED) return `more than ${MAX_ASKED} protected paths and links are changed; ${ADVICE}`;
    if (await isOwners(change, commits)) continue;
    if (isForbidden(change) || (await leadsOut(change, commits))) found.add(change.path);
  }
  if (found.size === 0) return undefined;
  const shown = [...found].slice(0, SHOWN).map((path) => JSON.stringify(path));
  const more = found.size > SHOWN ? ` and ${found.size - SHOWN} more` : "";
  return `protected paths are changed in what comes back: ${shown.join(", ")}${more}; ${ADVICE}`;
}

const ADVICE =
  "programs outside Heddle act on them, so nothing was delivered. Take them out of every commit, or let a person make that change in the repository";

/** Against every parent, so that nothing hides in a merge. */
export async function changesIn({ git, tip, owners }: CommitsToJudge): Promise<readonly CommittedChange[]> {
  const format = [
    "--format=",
    "--raw",
    "-z",
    "-m",
    "--root",
    "--no-abbrev",
    "--no-renames",
    "--ignore-submodules=none",
  ];
  const fields = (await git.run(["log", ...format, tip, "--not", ...owners, "--"])).toString("utf8").split("\0");
  const changes = new Map<string, CommittedChange>();
  for (let index = 0; index < fields.length; index += 1) {
    const [, mode, , object] = fields[index]?.split(" ") ?? [];
    if (fields[index]?.startsWith(":") !== true || mode === undefined || object === undefined) continue;
    index += 1;
    const path = fields[index] ?? "";
    changes.set(`${mode} ${object} ${path}`, { path, mode, object });
  }
  return [...changes.values()];
}

/** A backslash separates on other systems. */
function isForbidden({ path, mode }: CommittedChange): boolean {
  const parts = path.split(/[/\\]/);
  if (mode === SUBMODULE || protectedPart(parts) !== undefined) return true;
  return parts.some((part) => part === "" || part === "." || part === "..");
}

async function isOwners({ path, mode, object }: CommittedChange, { git, owners }: CommitsToJudge): Promise<boolean> {
  for (const commit of new Set(owners)) {
    const end = await git.try(["--literal-pathspecs", "ls-tree", "-z", "--full-tree", commit, "--", path]);
    const found = end.stdout.toString("utf8");
    const [itsMode, , itsObject] = (found.split("\t", 1)[0] ?? "").split(" ");
    if (end.exitCode !== 0) continue;
    if (found === "" ? mode === "000000" : itsMode === mode && itsObject === object) return true;
  }
  return false;
}

/** Out of the tree or into `.git`: whatever writes there later writes elsewhere. */
async function leadsOut({ path, object }: CommittedChange, { git }: CommitsToJudge): Promise<boolean> {
  const target = (await git.run(["cat-file", "blob", object])).toString("utf8");
  if (target.startsWith("/")) return true;
  const parts = posix.join(posix.dirname(path), target).split(/[/\\]/);
  return parts[0] === ".." || parts.some((part) => plainName(part) === ".git");
}
