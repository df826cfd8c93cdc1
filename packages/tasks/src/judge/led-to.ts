/**
 * Which new source the checks are led to by something written: the spec or a file of the beginning names it, or a file that is
 * itself part of the work does. What nothing names was found by the tool that a check runs, by a name the tool knows or by
 * looking through a folder; by-other-name.ts tells these two apart.
 *
 * Naming is by whole words: the file's full name, or its name without the ending as imports write it, or the name of the new
 * folder that it is in. The last two say nothing where the beginning has something of that name already: it is meant. Where it
 * has a file or a folder of files of that kind by the same name elsewhere, only a path to the new one leads there. Where a
 * command line of the beginning (of a Makefile, a package.json, a script) gives such a name to a program, `python3 -m unittest`,
 * only a path in a file of the beginning, `./unittest`, leads to a new file of that name: a program may mean something else.
 */
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import type { TaskSpec } from "@heddle/protocol/tasks";
import { toRaw, toSystem, toText } from "@heddle/tools/raw-path";
import { leavesOf } from "../checks/names.ts";
import {
  parentOf,
  type Change,
  type FrozenWork,
  type KeptTree,
  type Manifest,
  type RawPath,
  type TreeEntry,
} from "../tree/manifest.ts";
import { sliced, type Slices } from "../tree/slices.ts";
import { hasSourceEnding, isProse, roleOf } from "./file-role.ts";
import { isRunBy, wordsOf } from "./named-work.ts";

export interface LeadOptions {
  readonly spec: Pick<TaskSpec, "goal" | "checks" | "setup">;
  readonly base: Pick<KeptTree, "folder" | "manifest">;
  readonly frozen: Pick<FrozenWork, "folder">;
  readonly signal: AbortSignal;
}

/** A larger file is data, and names nothing. */
export const MAX_FILE_BYTES = 1024 * 1024;
/** Of the beginning that is looked through; what is only named beyond it counts as named by nothing. */
const MAX_BYTES = 256 * 1024 * 1024;

export interface Led {
  /** Whether a program comes to it by that, led-by-name.ts tells. */
  readonly all: ReadonlySet<RawPath>;
  /** By its full name, in the spec. */
  readonly byOwner: ReadonlySet<RawPath>;
  /** A file of the beginning says its name, and not only that of its folder. */
  readonly byItsName: ReadonlySet<RawPath>;
  /** Files of the beginning in which one of the names is. */
  readonly naming: readonly RawPath[];
}

/** Of `found`, what something leads to. `work`: files of the work that are so by themselves and that a command read. */
export async function ledTo(options: LeadOptions, found: readonly Change[], work: readonly Change[]): Promise<Led> {
  const { base, frozen, spec, signal } = options;
  const slices = sliced(signal);
  const naming = new Naming(found, base.manifest, await runByName(options, found, slices));
  naming.take(ownersText(spec), "full");
  const byOwner = new Set(naming.led);
  const texts: RawPath[] = [];
  if (naming.open > 0)
    for await (const { path, text } of textsOf(base, slices))
      if (naming.take(text, "beginning", parentOf(path))) texts.push(path);
  // What is led to leads on.
  const all = [...work, ...found];
  const seen = new Set<RawPath>();
  const isLeading = ({ path }: Change): boolean =>
    !seen.has(path) && (naming.led.has(path) || work.some((one) => one.path === path));
  for (let next = all.filter(isLeading); next.length > 0 && naming.open > 0; next = all.filter(isLeading)) {
    for (const { path, now } of next) {
      seen.add(path);
      if (now?.kind === "file" && now.size <= MAX_FILE_BYTES) naming.take(read(frozen.folder, path), "work");
    }
    await slices.rest();
  }
  return { all: naming.led, byOwner, byItsName: naming.byItsName, naming: texts };
}

/** Of `found`, what a command line of the beginning may come to by a shorter name. */
async function runByName(
  { base }: LeadOptions,
  found: readonly Change[],
  slices: Slices,
): Promise<ReadonlySet<RawPath>> {
  const run = new Set<RawPath>();
  for await (const { path, text } of textsOf(base, slices, hasCommandLines)) {
    const lines = [{ at: parentOf(path), words: wordsOf(argumentsIn(text)) }];
    for (const { path: own } of found) if (isRunBy(lines, own)) run.add(own);
  }
  return run;
}

/** Files of the beginning in which something can be named, up to a bound. */
export async function* textsOf(
  { folder, manifest }: LeadOptions["base"],
  slices: Slices,
  isWanted: (path: RawPath) => boolean = () => true,
): AsyncGenerator<{ readonly path: RawPath; readonly text: string }> {
  let bytes = 0;
  for (const [path, entry] of manifest) {
    if (!isNaming(path, entry) || !isWanted(path)) continue;
    bytes += entry.size;
    if (bytes > MAX_BYTES) return;
    yield { path, text: read(folder, path) };
    if (slices.isOverSoon()) await slices.rest();
  }
}

/** There is more of them than is looked through. */
export function hasTooManyTexts(manifest: Manifest): boolean {
  return [...manifest].reduce((sum, [path, entry]) => sum + (isNaming(path, entry) ? entry.size : 0), 0) > MAX_BYTES;
}

function isNaming(path: RawPath, { kind, size }: TreeEntry): boolean {
  return kind === "file" && size <= MAX_FILE_BYTES && canName(path);
}

/** What follows a word or a variable and a blank: not the value of a key, as in `name: sum`. */
function argumentsIn(text: string): string {
  return [...text.matchAll(/(?<=[\w./)}-][ \t]+)[^\s"'`;&|()<>=$,]+/g)].join(" ");
}

export function hasCommandLines(path: RawPath): boolean {
  return !hasSourceEnding(path) || /\.(sh|bash)$/i.test(path);
}

/** Which of `found` the others of it lead to, when nothing else does. */
export function ledByEachOther({ base, frozen }: LeadOptions, found: readonly Change[]): ReadonlySet<RawPath> {
  const led = new Set<RawPath>();
  for (const { path, now } of found) {
    if (led.has(path) || (now?.size ?? 0) > MAX_FILE_BYTES) continue;
    const naming = new Naming(
      found.filter((other) => other.path !== path),
      base.manifest,
    );
    naming.take(read(frozen.folder, path), "work");
    for (const other of naming.led) led.add(other);
  }
  return led;
}

function ownersText({ goal, checks, setup }: LeadOptions["spec"]): string {
  const runs = leavesOf(checks).flatMap((check) =>
    check.kind === "command" || check.kind === "tests" ? [check.run] : [],
  );
  const lines = [...runs, ...(setup === undefined ? [] : [setup.run])].flat();
  return toRaw([goal, ...lines].join("\n"));
}

/** Not what tools installed or keep, nor prose, which tells of files that no program comes to by it. */
function canName(path: RawPath): boolean {
  const role = roleOf(toText(path));
  return role !== "dependency" && role !== "repository" && role !== "cache" && !isProse(path);
}

function read(folder: string, path: RawPath): string {
  return readFileSync(toSystem(`${toRaw(folder)}/${path}`), "latin1");
}

class Naming {
  readonly led = new Set<RawPath>();
  readonly byItsName = new Set<RawPath>();
  /** By word: whom it names, and whether it is a full name. */
  readonly #full = new Map<string, RawPath[]>();
  readonly #short = new Map<string, RawPath[]>();
  readonly #count: number;
  readonly #pattern: RegExp;

  readonly #run: ReadonlySet<RawPath>;
  readonly #manifest: Manifest;
  /** Names that files and folders of the beginning have, by the ending of the files: a bare one may mean these. */
  readonly #known = new Set<string>();

  /** `run`: those that a command line may come to by a shorter name. */
  constructor(found: readonly Change[], manifest: Manifest, run: ReadonlySet<RawPath> = new Set()) {
    this.#run = run;
    this.#manifest = manifest;
    for (const [path, { kind }] of manifest) {
      if (kind !== "file" || !canName(path)) continue;
      const [name, folder] = [posix.basename(path), posix.basename(parentOf(path))];
      for (const word of [name, withoutEnding(name), folder]) this.#known.add(posix.extname(name) + word);
    }
    const taken = namesIn(manifest);
    const add = (to: Map<string, RawPath[]>, name: string, path: RawPath): void => {
      to.set(name, [...(to.get(name) ?? []), path]);
    };
    for (const { path } of found) {
      add(this.#full, posix.basename(path), path);
      if (!taken.has(withoutEnding(path))) add(this.#short, withoutEnding(posix.basename(path)), path);
      const folder = parentOf(path);
      if (folder !== "" && !taken.has(folder)) add(this.#short, posix.basename(folder), path);
    }
    this.#count = found.length;
    const words = [...new Set([...this.#full.keys(), ...this.#short.keys()])].toSorted((a, b) => b.length - a.length);
    const any = words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\/-]/g, "\\$&")).join("|");
    this.#pattern = new RegExp(`(?<![\\w\\x80-\\xff-])(?:${any})(?![\\w\\x80-\\xff-])`, "g");
  }

  /** How many are led to by nothing yet. */
  get open(): number {
    return this.#count - this.led.size;
  }

  /** `at`: the folder of the file of the beginning that the text is in. Whether one of the names is in it. */
  take(text: string, by: "full" | "beginning" | "work", at: RawPath = ""): boolean {
    let isNaming = false;
    for (const match of text.matchAll(this.#pattern)) {
      isNaming = true;
      const [word] = match;
      const isPath = by === "beginning" && /[./]/.test(text[match.index - 1] ?? "");
      const isMeant = (path: RawPath): boolean =>
        by !== "beginning" ||
        !this.#known.has(posix.extname(path) + word) ||
        this.#isPathTo(path, writtenAt(text, match.index) + word, at);
      for (const path of this.#full.get(word) ?? [])
        if ((by !== "work" || !this.#run.has(path)) && isMeant(path)) this.led.add(path);
      if (by === "beginning") for (const path of this.#namesakes(word)) if (isMeant(path)) this.byItsName.add(path);
      if (by === "full") continue;
      for (const path of this.#short.get(word) ?? [])
        if ((isPath || !this.#run.has(path)) && isMeant(path)) this.led.add(path);
    }
    return isNaming;
  }

  #namesakes(word: string): readonly RawPath[] {
    const short = this.#short.get(word)?.filter((path) => withoutEnding(posix.basename(path)) === word) ?? [];
    return [...(this.#full.get(word) ?? []), ...short];
  }

  /** From the folder it is written in (`./sub`, `.sub`), or with a folder (`app/sub`, `app.sub`) that only this one is in. */
  #isPathTo(path: RawPath, written: string, at: RawPath): boolean {
    const slashed = written.includes("/")
      ? written
      : written.replace(/^\.+(?=.)/, "./").replaceAll(/(?<=\w)\.(?=\w)/g, "/");
    if (/^\.{1,2}\//.test(slashed)) return namesOf(path).includes(posix.join(at, slashed));
    const isEnd = (whole: RawPath): boolean =>
      namesOf(whole).some((name) => name === slashed || name.endsWith(`/${slashed}`));
    return slashed.includes("/") && isEnd(path) && ![...this.#manifest.keys()].some(isEnd);
  }
}

/** What of a path or a dotted name stands before a word; `from a import b` is `a.b`. */
function writtenAt(text: string, index: number): string {
  const before = text.slice(Math.max(0, index - MAX_WRITTEN), index);
  const [, from] = /\bfrom[ \t]+([\w.]+)[ \t]+import[ \t(]+[\w \t,]*$/.exec(before) ?? [];
  if (from !== undefined) return from.endsWith(".") ? from : `${from}.`;
  return /[\w\x80-\xff./-]*$/.exec(before)?.[0] ?? "";
}

const MAX_WRITTEN = 300;

/** How it can be written: whole, without its ending, and by the folder it is in. */
function namesOf(path: RawPath): readonly RawPath[] {
  return [path, withoutEnding(path), parentOf(path)];
}

/** Every path of the beginning, without its ending as well. What has such a name already is meant by it. */
export function namesIn(manifest: Manifest): ReadonlySet<RawPath> {
  const names = new Set<RawPath>();
  for (const path of manifest.keys()) names.add(path).add(withoutEnding(path));
  return names;
}

export function withoutEnding(path: string): string {
  return path.replace(/(?<=[^/])\.[^./]+$/, "");
}
