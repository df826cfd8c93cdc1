/**
 * Whether a program comes to a new file by what the work says of it, or a file of the beginning. A mention, in a comment, in a
 * list of what to leave out or in a branch that is never taken, leads nowhere: the tool that a check runs finds the file by
 * itself. So the checks are run with other names in the place of the mentions; what they read all the same, and not under such
 * a name either, is only mentioned. A name that something of the beginning has too is left as it is: that is meant by it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { posix } from "node:path";
import { toRaw, toSystem, type RawPath } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { byPath, parentOf, sha256, type Change, type FrozenWork } from "../tree/manifest.ts";
import { copy, otherName } from "./by-other-name.ts";
import { judgePicked, type ToJudge } from "./judge-picked.ts";
import { MAX_FILE_BYTES, namesIn, withoutEnding } from "./led-to.ts";
import { isMain, runsCommands } from "./named-work.ts";
import { openScratch } from "./scratch.ts";

type Case = Pick<ToJudge, "baseline" | "room"> & { readonly frozen: FrozenWork };

export interface Mentions {
  /** To which no more leads than a name in the work, or in a file of the beginning. */
  readonly mentioned: readonly Change[];
  /** The files of the work that may say something of it. */
  readonly texts: readonly Change[];
  /** Those of the beginning that do. */
  readonly naming: readonly RawPath[];
}

/** Of `mentioned`. */
export async function onlyMentioned(
  checkOptions: CheckOptions,
  work: Case,
  { mentioned, texts, naming }: Mentions,
): Promise<readonly Change[]> {
  if (mentioned.length === 0) return [];
  const taken = namesIn(work.room.base.manifest);
  const names = mentioned.map(({ path }) => namesFor(path, work, taken));
  const own = new Set([...texts.map(({ path }) => path), ...naming]);
  const stay = await readWith(checkOptions, work, { names, own, isMoved: false });
  // An import of another name finds nothing, so that nobody reads it.
  const found = mentioned.filter(({ path }) => stay.isRead(path));
  if (found.length === 0) return [];
  // A tool may read all there is: then it is read under any name, and loaded by it.
  const moved = await readWith(checkOptions, work, { names, own, isMoved: true });
  return found.filter(({ path }) => !moved.passed || !moved.isRead(path));
}

/** What is put in the place of a name. */
interface Other {
  /** The file, or the new folder that it stands for. */
  readonly path: RawPath;
  readonly to: RawPath;
  readonly words: ReadonlyMap<string, string>;
}

function namesFor(path: RawPath, { room, frozen }: Case, taken: ReadonlySet<RawPath>): Other {
  const folder = parentOf(path);
  const isNew = folder !== "" && !room.base.manifest.has(folder);
  const named = isNew && isMain(path) ? folder : path;
  const to = otherName(named, frozen);
  const [name, other] = [posix.basename(named), posix.basename(to)];
  const words = new Map<string, string>();
  if (!taken.has(withoutEnding(named))) words.set(withoutEnding(name), withoutEnding(other));
  // The folder may be all that is said of it.
  if (isNew && named !== folder && !taken.has(folder))
    words.set(posix.basename(folder), posix.basename(otherName(folder, frozen)));
  if (!taken.has(named)) words.set(name, other);
  return { path: named, to, words };
}

interface Reading {
  readonly passed: boolean;
  isRead(path: RawPath): boolean;
}

interface Renaming {
  readonly names: readonly Other[];
  readonly own: ReadonlySet<RawPath>;
  /** The files have the other names too. */
  readonly isMoved: boolean;
}

async function readWith(checkOptions: CheckOptions, work: Case, { names, own, isMoved }: Renaming): Promise<Reading> {
  const { room, frozen, baseline } = work;
  await using scratch = await openScratch(checkOptions.home, "names");
  // A file is moved in its folder before the folder is.
  const inOrder = names.toSorted((a, b) => b.path.length - a.path.length);
  const movedTo = (path: RawPath): RawPath =>
    (isMoved ? inOrder : []).reduce(
      (at, one) => (at === one.path || at.startsWith(`${one.path}/`) ? `${one.to}${at.slice(one.path.length)}` : at),
      path,
    );
  const words = new Map(
    names.flatMap((one) => [...one.words]).filter(([word]) => !isMoved || isMovedWord(names, word)),
  );
  const picked = withNaming(room, own).map(({ from = frozen.folder, ...change }): Change => {
    const { path, now } = change;
    const to = { path: movedTo(path), folder: scratch.folder };
    if (now === undefined) return { ...change, path: to.path };
    copy({ path, folder: from }, to, now);
    if (now.kind !== "file" || now.size > MAX_FILE_BYTES || !own.has(path)) return { ...change, path: to.path };
    return { ...change, path: to.path, now: { ...now, ...rewritten(to, words) } };
  });
  const changes = picked.toSorted(byPath);
  const renamed = { folder: scratch.folder, changes, sha256: frozen.sha256 };
  const { results, ran } = await judgePicked(
    checkOptions,
    { baseline, room: { ...room, frozen: renamed, picked: changes } },
    "work",
  );
  const { checks } = checkOptions.spec;
  const isCommand = (index: number): boolean => checks[index] !== undefined && runsCommands(checks[index]);
  return {
    // What checks of files say of the other names is no matter.
    passed: results.every(({ outcome }, index) => outcome === "passed" || !isCommand(index)),
    isRead: (path) => ran.some(({ reads }) => reads?.has(movedTo(path)) === true),
  };
}

/** With files of the beginning as they were, so that they can be changed. */
function withNaming({ picked, base }: Case["room"], own: ReadonlySet<RawPath>): readonly Change[] {
  const others = new Set(picked.map(({ path }) => path));
  return picked.concat(
    [...own].flatMap((path) => {
      const entry = others.has(path) ? undefined : base.manifest.get(path);
      return entry === undefined
        ? []
        : [{ path, how: "changed", before: entry, now: entry, from: base.folder } as const];
    }),
  );
}

/** A folder that is mentioned stays where it is when a file in it is moved. */
function isMovedWord(names: readonly Other[], word: string): boolean {
  return names.some(({ path }) => [posix.basename(path), withoutEnding(posix.basename(path))].includes(word));
}

function rewritten(
  { folder, path }: { readonly folder: string; readonly path: RawPath },
  words: ReadonlyMap<string, string>,
): { readonly size: number; readonly sha256: string } {
  const at = toSystem(`${toRaw(folder)}/${path}`);
  const longest = [...words.keys()].toSorted((a, b) => b.length - a.length);
  const any = longest.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\/-]/g, "\\$&")).join("|");
  const pattern = new RegExp(`(?<![\\w\\x80-\\xff-])(?:${any})(?![\\w\\x80-\\xff-])`, "g");
  const text = readFileSync(at, "latin1").replaceAll(pattern, (word) => words.get(word) ?? word);
  const bytes = Buffer.from(text, "latin1");
  writeFileSync(at, bytes);
  return { size: bytes.length, sha256: sha256(bytes) };
}
