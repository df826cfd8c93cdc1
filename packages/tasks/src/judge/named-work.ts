/**
 * Which files the checks of a spec name as the work, so that a verdict may rest on what the agent made of them: those that a
 * check demands to be there, gone, changed or of some content. What judges is the work only where a check demands it by its
 * own name, not by a wildcard: schema files, and files that a command of a check names. A check that passed before the task began demands nothing of the work and names none; neither
 * does a limit (`git: { only }`), nor a pattern that is all wildcard.
 */
import { posix } from "node:path";
import type { LeafCheck, LeafCheckOf } from "@heddle/protocol";
import type { TaskCheck, TaskSpec } from "@heddle/protocol/tasks";
import { boxGlobs } from "../checks/checkboxes.ts";
import { finds, globOf, type Glob } from "../checks/globs.ts";
import { isLeaf, leavesOf, nameChecks, type NamedCheck } from "../checks/names.ts";
import { foldersOf } from "../tree/manifest.ts";
import { relativePath } from "../checks/relative-path.ts";

/** `passedBefore`: names of the checks that passed when the task began. `judges`: what a wildcard does not name. */
export function namedWork(
  { checks }: Pick<TaskSpec, "checks">,
  passedBefore: readonly string[],
  judges = isJudge({ checks }),
): (path: string) => boolean {
  const globs = demandedBy(checks, passedBefore).filter(isNameIn).flatMap(usable);
  const isByName = namedByName({ checks }, passedBefore);
  return (path) => isByName(path) || (!judges(path) && globs.some((glob) => finds(glob, path)));
}

/** What the checks name as the work, as they name it; a check that must not pass names nothing. */
export function namedGlobs({ checks }: Pick<TaskSpec, "checks">): readonly string[] {
  const demanding = ({ check, parts }: NamedCheck): readonly string[] => {
    if (check.kind === "git") return check.only ?? [];
    if (isLeaf(check)) return namedBy(check);
    return check.kind === "not" ? [] : parts.flatMap(demanding);
  };
  return nameChecks(checks).flatMap(demanding);
}

/** Files that a check runs, or judges by. A command may leave out the ending of what it names: `node check`. */
export function isJudge({ checks }: Pick<TaskSpec, "checks">): (path: string) => boolean {
  const judges = new Set(leavesOf(checks).flatMap(judgesOf));
  return (path) => judges.has(path) || judges.has(withoutEnding(path));
}

/**
 * What a command comes to by the names in it without saying which file that is: the ending left out, or what stands for a
 * folder (`index.js`, `__main__.py`). New source by such a name can take the place of the tool that the check means; a file
 * that the command names in full and that was not there is what it asks for.
 */
export function isRun({ checks }: Pick<TaskSpec, "checks">): (path: string) => boolean {
  const judges = new Set(leavesOf(checks).flatMap(judgesOf));
  const lines = leavesOf(checks).flatMap((check) =>
    check.kind === "command" || check.kind === "tests"
      ? [{ at: relativeOr(check.cwd), words: wordsOf([check.run].flat().join(" ")) }]
      : [],
  );
  return (path) => shortNames(path).some((name) => judges.has(name)) || isRunBy(lines, path);
}

/** Words of one command line, and the folder it is run in; "": the workspace. */
export interface CommandLine {
  readonly at: string;
  readonly words: ReadonlySet<string>;
}

/** With what is written onto a short option: `python3 -munittest`, `-Bmunittest`. */
export function wordsOf(line: string): ReadonlySet<string> {
  const words = line.split(/[\s"'`;&|()<>=$,]+/).map((word) => word.replace(/^(\.\/)+|\/+$/g, ""));
  const values = words
    .filter((word) => /^-\w{2,40}$/.test(word))
    .flatMap((word) => Array.from(word, (_, at) => word.slice(at)).slice(2));
  return new Set([...words, ...values]);
}

/** Also where the line goes into a folder first: `cd x && python3 -m unittest`. */
export function isRunBy(lines: readonly CommandLine[], path: string): boolean {
  const isNamed = (words: ReadonlySet<string>, name: string): boolean =>
    words.has(name) || words.has(name.replaceAll("/", "."));
  return lines.some(({ at, words }) =>
    shortNames(path).some((name) => {
      if (at !== "" && !name.startsWith(`${at}/`)) return false;
      const inside = at === "" ? name : name.slice(at.length + 1);
      if (isNamed(words, inside)) return true;
      return [...foldersOf(inside)].some(
        (folder) => words.has(folder) && isNamed(words, inside.slice(folder.length + 1)),
      );
    }),
  );
}

function shortNames(path: string): readonly string[] {
  const name = withoutEnding(path);
  const folder = posix.dirname(path);
  return [...(name === path ? [] : [name]), ...(isMain(path) ? [folder] : [])];
}

/** What it is called where it is loaded: `sub` for `sub.js`, `sub.h` and `sub/index.js`. */
export function subjectOf(path: string): string {
  return posix.basename(isMain(path) ? posix.dirname(path) : withoutEnding(path));
}

/** It stands for the folder that it is in. */
export function isMain(path: string): boolean {
  return path.includes("/") && /^(index|main|mod|__init__|__main__)$/.test(posix.basename(withoutEnding(path)));
}

function relativeOr(cwd: string): string {
  return paths(cwd)[0] ?? "";
}

function withoutEnding(path: string): string {
  return path.replace(/\.[^./]+$/, "");
}

/** What is to be gone, by the checks: with a folder, everything in it. */
export function namedToGo({ checks }: Pick<TaskSpec, "checks">): (path: string) => boolean {
  const leaves = leavesOf(checks);
  const names = new Set(leaves.flatMap((check) => (check.kind === "file-absent" ? paths(check.path) : [])));
  const globs = leaves.flatMap((check) => (check.kind === "glob-count" && check.max === 0 ? usable(check.glob) : []));
  return (path) => [path, ...foldersOf(path)].some((one) => names.has(one)) || globs.some((glob) => finds(glob, path));
}

function demandedBy(checks: readonly TaskCheck[], passedBefore: readonly string[]): readonly string[] {
  const before = new Set(passedBefore);
  // Below `not` a part that passed before is what is to go.
  const demanded = ({ name, check, parts }: NamedCheck, isTurned: boolean): readonly string[] => {
    if (before.has(name) !== isTurned) return [];
    if (isLeaf(check)) return namedBy(check);
    return parts.flatMap((part) => demanded(part, check.kind === "not" ? !isTurned : isTurned));
  };
  return nameChecks(checks).flatMap((named) => demanded(named, false));
}

/** A pattern without one letter that a match must have says nothing about which files are meant. */
function isNameIn(pattern: string): boolean {
  const plain = pattern.replaceAll(/\[[^\]]*\]/g, "*");
  // Alternatives say a name where each of them does; innermost first.
  const less = plain.replaceAll(/\{([^{}]*)\}/g, (_, of: string) => (of.split(",").every(isNameIn) ? "a" : "*"));
  return less === plain ? /[^\s*?.,/!-]/.test(less) : isNameIn(less);
}

function namedBy(check: LeafCheck): readonly string[] {
  switch (check.kind) {
    case "file-exists":
    case "file-absent":
    case "contains":
    case "matches":
    case "json":
    case "yaml":
    case "schema":
      return [check.path];
    case "glob-count":
      return [check.glob];
    case "changed":
      return check.paths;
    case "checkboxes":
      return boxGlobs(check);
    case "git":
    case "unchanged":
    case "command":
    case "tests":
    case "http":
      return [];
  }
}

/** A path or glob that cannot be one is told by its check. */
function usable(pattern: string): readonly Glob[] {
  try {
    return [globOf(pattern)];
  } catch {
    return [];
  }
}

function judgesOf(check: LeafCheck): readonly string[] {
  if (check.kind === "schema") return typeof check.schema === "string" ? paths(check.schema) : [];
  if (check.kind !== "command" && check.kind !== "tests") return [];
  const words = typeof check.run === "string" ? check.run.split(/[\s"'`;&|()<>=$]+/) : check.run;
  return [...words, ...(check.kind === "tests" && check.report !== undefined ? [check.report] : [])].flatMap((word) => [
    ...paths(posix.join(check.cwd, word)),
    // `python -m package.module`
    ...(/^\w+(\.\w+)+$/.test(word) ? paths(posix.join(check.cwd, word.replaceAll(".", "/"))) : []),
  ]);
}

function paths(word: string): readonly string[] {
  try {
    const path = relativePath(word);
    return path === "" ? [] : [path];
  } catch {
    return [];
  }
}

/** A command or a test run is in it, so that it can come out otherwise on the same files. */
export function runsCommands(check: TaskCheck): boolean {
  return leavesOf([check]).some(({ kind }) => kind === "command" || kind === "tests");
}

export type PlainCommand = LeafCheckOf<"command"> | LeafCheckOf<"tests">;

/** Its end with 0 is its yes. */
export function isPlainCommand(check: LeafCheck): check is PlainCommand {
  return check.kind === "tests" || (check.kind === "command" && check.exit === 0);
}

/** What it finds may depend on what is no file: another machine, or a server of this one. */
export function seesOutside(check: TaskCheck): boolean {
  return leavesOf([check]).some(
    (leaf) => leaf.kind === "http" || ((leaf.kind === "command" || leaf.kind === "tests") && leaf.network),
  );
}

/** It demands that something stays as it is, so that it passes before any work is done. */
export function isGuardKind(check: TaskCheck): boolean {
  switch (check.kind) {
    case "unchanged":
    case "file-absent":
    case "not":
      return true;
    case "git":
      return check.commit === undefined && check.branch === undefined;
    case "all":
    case "any":
      return check.of.every(isGuardKind);
    default:
      return false;
  }
}

/** Named as itself, not by a wildcard or a folder that many things lie in. */
export function namedByName(
  { checks }: Pick<TaskSpec, "checks">,
  passedBefore: readonly string[],
): (path: string) => boolean {
  const names = new Set(demandedBy(checks, passedBefore).flatMap(paths));
  return (path) => names.has(path);
}
