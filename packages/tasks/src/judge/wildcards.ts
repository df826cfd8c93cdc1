/**
 * Changed source that only a wildcard names as the work (`changed: [src/**]`) and that may judge it instead. Who loads it at the
 * beginning tells: what other source loads, or what a test loads alone, is tested; what tests load only beside what they test
 * may be their helper. What a command names is what it asks about where something else decides, another file or a program in
 * the command, and where the command fails once the file is blank: a judge that is blank lets everything pass.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import type { LeafCheck, LeafCheckOf } from "@heddle/protocol";
import { toRaw, toSystem, toText } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { leavesOf, nameChecks } from "../checks/names.ts";
import { byPath, parentOf, sha256, type Change, type RawPath } from "../tree/manifest.ts";
import { sliced } from "../tree/slices.ts";
import { roleOf } from "./file-role.ts";
import { judgePicked, type ToJudge } from "./judge-picked.ts";
import { hasCommandLines, hasTooManyTexts, textsOf, withoutEnding } from "./led-to.ts";
import { isJudge, subjectOf } from "./named-work.ts";
import { openScratch } from "./scratch.ts";

export interface Matched {
  /** Source of the beginning that the agent changed and a command read, named by a wildcard alone. */
  readonly suspects: readonly Change[];
  readonly isMatched: (path: string) => boolean;
  /** All that the agent changed, with which the checks pass. */
  readonly toJudge: ToJudge;
}

/** Each costs one more run of the commands; further ones are the owner's to name. */
const MAX_BLANKED = 10;

/** Which files no wildcard names, because they judge or may do so. */
export async function judgesAmong(checkOptions: CheckOptions, matched: Matched): Promise<(path: string) => boolean> {
  const isAsked = isJudge(checkOptions.spec);
  const { suspects, toJudge } = matched;
  const isKnown = suspects.length > 0 && !hasTooManyTexts(toJudge.room.base.manifest);
  const work = isKnown ? await workAmong(checkOptions, matched) : new Set();
  const suspected = new Set(suspects.map(({ path }) => toText(path)));
  return (path) => !work.has(path) && (suspected.has(path) || isAsked(path));
}

async function workAmong(checkOptions: CheckOptions, matched: Matched): Promise<ReadonlySet<string>> {
  const isAsked = isJudge(checkOptions.spec);
  const loads = await loadsOf(checkOptions, matched);
  const tried = new Map<RawPath, Promise<boolean>>();
  const mayDecide = async (path: RawPath): Promise<boolean> => {
    if (!tried.has(path) && tried.size === MAX_BLANKED) return true;
    const decides = tried.get(path) ?? passesBlank(checkOptions, matched.toJudge, path);
    tried.set(path, decides);
    return await decides;
  };
  const work = new Set<string>();
  for (const { path } of matched.suspects) {
    const by = loads.by(path);
    let isTested = by.has("source") || by.has("test alone");
    for (const entry of isTested ? [] : loads.entriesOf(path)) isTested ||= !(await mayDecide(entry));
    const isHelper = !isTested && [...by].some((loader) => loader !== "command line");
    if (isHelper || (isAsked(toText(path)) && !loads.isAskedAbout(path))) continue;
    const isRun = isAsked(toText(path)) || (by.size === 1 && by.has("command line"));
    if (!isRun || !(await mayDecide(path))) work.add(toText(path));
  }
  return work;
}

/**
 * What names a file: source, source that a command line names, a test, one of these without other source, configuration, a
 * command line in a file.
 */
type Loader = "source" | "entry" | "test" | "test alone" | "configuration" | "command line";

interface Loads {
  by(path: RawPath): ReadonlySet<Loader>;
  /** Source that loads it and that a command line names: a program, or a check by another name. */
  entriesOf(path: RawPath): readonly RawPath[];
  /** Each command that names it has something else that decides, and nothing else that it may be about. */
  isAskedAbout(path: RawPath): boolean;
}

async function loadsOf({ spec, signal }: CheckOptions, { suspects, isMatched, toJudge }: Matched): Promise<Loads> {
  const { base } = toJudge.room;
  const files = [...base.manifest].flatMap(([path, { kind }]) => (kind === "file" ? [path] : []));
  const isAsked = isJudge(spec);
  const isTest = (path: RawPath): boolean =>
    roleOf(toText(path)) === "test" || (isAsked(toText(path)) && !isMatched(toText(path)));
  const subjects = subjectsOf(files.filter((path) => isCode(path) && !isTest(path)));
  const by = new Map(suspects.map(({ path }) => [path, new Set<Loader>()]));
  const sources = new Map<RawPath, RawPath[]>(suspects.map(({ path }) => [path, []]));
  const aboutOf = new Map<RawPath, readonly string[]>();
  const inLines = new Set<string>();
  for await (const { path, text } of textsOf(base, sliced(signal))) {
    const names = namesIn(text);
    const about = [...names].flatMap((name) => subjects.get(name) ?? []);
    const role = isAsked(toText(path)) ? "test" : roleOf(toText(path));
    if (isAsked(toText(path))) aboutOf.set(path, about);
    if (hasCommandLines(path)) for (const name of names) inLines.add(name);
    for (const [suspect, loaders] of by) {
      if (suspect === path || !(names.has(posix.basename(suspect)) || names.has(subjectOf(suspect)))) continue;
      if (role === "test" || role === "configuration") loaders.add(role);
      else if (hasCommandLines(path)) loaders.add("command line");
      else if (role === "source") sources.get(suspect)?.push(path);
      if ((role === "test" || role === "source") && isAlone(about, suspect)) loaders.add("test alone");
    }
  }
  const isEntry = (path: RawPath): boolean => inLines.has(posix.basename(path));
  for (const [path, loaders] of by)
    for (const source of sources.get(path) ?? []) loaders.add(isEntry(source) ? "entry" : "source");
  const isAskedAboutBy = (check: LeafCheck, path: RawPath): boolean => {
    const isNamed = isJudge({ checks: [check] });
    if (!isNamed(toText(path))) return true;
    const named = files.filter((file) => isNamed(toText(file)));
    const tests = named.filter((file) => isTest(file) && /^(test|source)$/.test(roleOf(toText(file))));
    const asked = named.filter((file) => isCode(file) && !isTest(file)).map(subjectOf);
    const about = [...asked, ...tests.flatMap((file) => aboutOf.get(file) ?? [])];
    const isOnly = isAlone(about, path) || by.get(path)?.has("source") === true;
    return isOnly && isPlainCommand(check) && (tests.length > 0 || hasProgramIn(check));
  };
  return {
    by: (path) => by.get(path) ?? new Set(),
    entriesOf: (path) => (sources.get(path) ?? []).filter(isEntry),
    isAskedAbout: (path) => leavesOf(spec.checks).every((check) => isAskedAboutBy(check, path)),
  };
}

/** By the names that each may be loaded by. */
function subjectsOf(files: readonly RawPath[]): ReadonlyMap<string, string> {
  return new Map(
    files.flatMap((path) => [posix.basename(path), subjectOf(path)].map((name) => [name, subjectOf(path)])),
  );
}

/** Nothing else is loaded. A package is named with what is in it. */
function isAlone(about: readonly string[], path: RawPath): boolean {
  return about.every((name) => name === subjectOf(path) || parentOf(path).split("/").includes(name));
}

type PlainCommand = LeafCheckOf<"command"> | LeafCheckOf<"tests">;

/** Its end with 0 is its yes. */
function isPlainCommand(check: LeafCheck): check is PlainCommand {
  return check.kind === "tests" || (check.kind === "command" && check.exit === 0);
}

/** A call with arguments is in it, `add(1, 2)`, which no shell takes: it is a program in some language. */
function hasProgramIn({ run }: PlainCommand): boolean {
  return /\w\([^)]/.test([run].flat().join(" "));
}

/** A command that failed at the beginning, and reads it, ends well although nothing is in it. */
async function passesBlank(checkOptions: CheckOptions, { baseline, room }: ToJudge, path: RawPath): Promise<boolean> {
  const failed = nameChecks(checkOptions.spec.checks).filter(({ name }) => !baseline.passed.includes(name));
  const checks = leavesOf(failed.map(({ check }) => check))
    .filter(isPlainCommand)
    .map(({ run, cwd, timeoutMs, network }) => ({ kind: "command" as const, run, cwd, timeoutMs, network, exit: 0 }));
  await using scratch = await openScratch(checkOptions.home, "blank");
  mkdirSync(toSystem(`${toRaw(scratch.folder)}/${parentOf(path)}`), { recursive: true, mode: 0o700 });
  writeFileSync(toSystem(`${toRaw(scratch.folder)}/${path}`), "\n");
  const mode = (room.picked.find((one) => one.path === path)?.now ?? room.base.manifest.get(path))?.mode ?? 0o644;
  const mtimeNs = BigInt(Date.now()) * 1_000_000n;
  const now = { kind: "file", mode, size: 1, mtimeNs, sha256: sha256("\n") } as const;
  const blank = { path, how: "changed", now, from: scratch.folder } as const;
  const picked = [...room.picked.filter((one) => one.path !== path), blank].toSorted(byPath);
  const spec = { ...checkOptions.spec, checks };
  const { ran } = await judgePicked({ ...checkOptions, spec }, { baseline, room: { ...room, picked } }, "work");
  return ran.some(({ result, reads }) => result.outcome === "passed" && (reads === undefined || reads.has(path)));
}

/** Source that can be run, or loaded by what runs. */
function isCode(path: RawPath): boolean {
  return roleOf(toText(path)) === "source" && !/\.(md|rst|txt|adoc)$/i.test(path);
}

const LOADING = /^\s*\.\s|\b(import|from|require\w*|include|use|using|mod|source|load)\b/;

/** Words that can be names of files: with what is written around them, or alone where a line loads something. */
function namesIn(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const line of text.split("\n")) {
    const isLoading = LOADING.test(line);
    const isQuoted = /["'`<]/.test(line);
    for (const { 0: word, index } of line.matchAll(/[\w\x80-\xff@./-]+/g)) {
      const name = posix.basename(word);
      if (/\w\.\w/.test(name)) names.add(name);
      if (word.includes("/") || (isLoading && (!isQuoted || /["'`<]/.test(line[index - 1] ?? ""))))
        for (const part of [withoutEnding(name), ...name.split(".")]) names.add(part);
    }
  }
  return names;
}
