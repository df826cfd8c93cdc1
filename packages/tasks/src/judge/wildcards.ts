/**
 * Changed source that only a wildcard names as the work (`changed: [src/**]`) and that may judge it instead. Who loads it at the
 * beginning tells: what other source loads, or what a test loads alone, is tested; what tests load only beside what they test
 * may be their helper. What a command names is what it asks about where something else decides, another file or a program in
 * the command, and where the command fails once the file is blank: a judge that is blank lets everything pass. Whoever loads
 * it, what a command takes at its word is no work (stand-ins.ts).
 */
import { posix } from "node:path";
import type { LeafCheck } from "@heddle/protocol";
import { toText } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { leavesOf } from "../checks/names.ts";
import { parentOf, type Change, type RawPath } from "../tree/manifest.ts";
import { sliced } from "../tree/slices.ts";
import { isProse, roleOf } from "./file-role.ts";
import type { ToJudge } from "./judge-picked.ts";
import { hasCommandLines, hasTooManyTexts, textsOf, withoutEnding } from "./led-to.ts";
import { isJudge, isPlainCommand, subjectOf, type PlainCommand } from "./named-work.ts";
import { BLANK, isTakenAtItsWord, passWith } from "./stand-ins.ts";

export interface Matched {
  /** Source of the beginning that the agent changed or removed, of which a command knows, named by a wildcard alone. */
  readonly suspects: readonly Change[];
  /** Those among them that commands read. */
  readonly isRead: (path: RawPath) => boolean;
  readonly isMatched: (path: string) => boolean;
  /** All that the agent changed, with which the checks pass. */
  readonly toJudge: ToJudge;
}

/** Each costs one more run of the commands; further ones are the owner's to name. */
const MAX_BLANKED = 10;
/** Each costs one or two more; beyond them who loads a file has to do. */
const MAX_STOOD_IN = 10;

export interface Judges {
  /** No wildcard names it, because it judges or may do so. */
  readonly isOne: (path: string) => boolean;
  /** Those among them that a command took at their word and nothing else spoke against, and those that none read. */
  readonly taken: ReadonlySet<string>;
}

export async function judgesAmong(checkOptions: CheckOptions, matched: Matched): Promise<Judges> {
  const isAsked = isJudge(checkOptions.spec);
  const { suspects, isRead, toJudge } = matched;
  const isKnown = suspects.length > 0 && !hasTooManyTexts(toJudge.room.base.manifest);
  const { work, taken } = isKnown ? await workAmong(checkOptions, matched) : NOTHING_KNOWN;
  const suspected = new Set(suspects.map(({ path }) => toText(path)));
  const isOne: Judges["isOne"] = (path) => !work.has(path) && (suspected.has(path) || isAsked(path));
  // It may judge by being there: nothing may rest on that, and where nothing does it is as wanted as what the wildcard names.
  const unread = suspects.filter(({ path }) => !isRead(path)).map(({ path }) => toText(path));
  return { isOne, taken: new Set([...taken, ...unread.filter(isOne)]) };
}

interface Told {
  readonly work: ReadonlySet<string>;
  readonly taken: ReadonlySet<string>;
}

const NOTHING_KNOWN: Told = { work: new Set(), taken: new Set() };

async function workAmong(checkOptions: CheckOptions, matched: Matched): Promise<Told> {
  const isAsked = isJudge(checkOptions.spec);
  const loads = await loadsOf(checkOptions, matched);
  const tried = new Map<RawPath, Promise<boolean>>();
  const passesBlank = async (path: RawPath): Promise<boolean> =>
    (await passWith(checkOptions, matched.toJudge, { path, text: BLANK })).size > 0;
  const mayDecide = async (path: RawPath): Promise<boolean> => {
    if (!tried.has(path) && tried.size === MAX_BLANKED) return true;
    const decides = tried.get(path) ?? passesBlank(path);
    tried.set(path, decides);
    return await decides;
  };
  const work = new Map<string, RawPath>();
  for (const { path } of matched.suspects) {
    const by = loads.by(path);
    let isTested = by.has("source") || by.has("test alone");
    for (const entry of isTested ? [] : loads.entriesOf(path)) isTested ||= !(await mayDecide(entry));
    const isHelper = !isTested && [...by].some((loader) => loader !== "command line");
    if (isHelper || (isAsked(toText(path)) && !loads.isAskedAbout(path))) continue;
    const isRun = isAsked(toText(path)) || (by.size === 1 && by.has("command line"));
    if (!isRun || !(await mayDecide(path))) work.set(toText(path), path);
  }
  // What no command reads, and then what other source loads, is the least likely to be what everything is asked by.
  const rank = (path: RawPath): number => (matched.isRead(path) ? 0 : 2) + Number(loads.by(path).has("source"));
  const inOrder = [...work].toSorted(([, a], [, b]) => rank(a) - rank(b));
  const taken = new Set<string>();
  for (const [name, path] of inOrder.slice(0, MAX_STOOD_IN))
    if (await isTakenAtItsWord(checkOptions, matched.toJudge, path)) taken.add(name);
  return { work: new Set([...work.keys()].filter((name) => !taken.has(name))), taken };
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

/** A call with arguments is in it, `add(1, 2)`, which no shell takes: it is a program in some language. */
function hasProgramIn({ run }: PlainCommand): boolean {
  return /\w\([^)]/.test([run].flat().join(" "));
}

/** Source that can be run, or loaded by what runs. */
function isCode(path: RawPath): boolean {
  return roleOf(toText(path)) === "source" && !isProse(path);
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
