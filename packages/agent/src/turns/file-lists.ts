/**
 * Lists of the files of a folder by what the file system says of each, and how two of them differ. Loaded with the first list:
 * a turn without calls makes none.
 */
import { fstatSync, lstatSync, opendirSync, type BigIntStats } from "node:fs";
import path from "node:path";
import { breathe } from "@heddle/journal";
import { clockMs, type EventOf } from "@heddle/protocol";

type Compared = EventOf<"files.compared">;
type NotExamined = NonNullable<Compared["notExamined"]>;

export interface ListLimits {
  readonly maxFiles: number;
  /** Of one list. */
  readonly maxMs: number;
}

/** Other work runs in between. */
const SLICE_MS = 4;
const MAX_CHANGED = 100;

export interface FileList {
  /** What the file system says of each. */
  readonly files: ReadonlyMap<string, string>;
  /** Folders whose names are all in it. */
  readonly whole: ReadonlySet<string>;
  readonly notExamined: NotExamined | undefined;
}

/** Breadth first, so that what a bound leaves out is deep: both lists leave out the same. Never rejects. */
export async function listFiles(
  top: string,
  skip: ReadonlySet<string>,
  { maxFiles, maxMs }: ListLimits,
): Promise<FileList> {
  const files = new Map<string, string>();
  const whole = new Set<string>();
  const own = ownOutputs();
  let notExamined: NotExamined | undefined;
  let [worked, since] = [0, clockMs()];
  const isOver = (): boolean => {
    if (files.size >= maxFiles) notExamined = "files";
    else if (worked + clockMs() - since > maxMs) notExamined = "time";
    else return false;
    return true;
  };
  const folders = [top];
  const itself = statOf(top);
  if (itself !== undefined) files.set(top, said(itself));
  for (const folder of folders) {
    if (clockMs() - since > SLICE_MS) {
      worked += clockMs() - since;
      await breathe();
      since = clockMs();
    }
    if (isOver()) break;
    const names = namesIn(folder, maxFiles - files.size);
    if (names === undefined) {
      notExamined ??= "unreadable";
      continue;
    }
    let isWhole = names.isWhole;
    for (const name of names.found) {
      const file = path.join(folder, name);
      if (skip.has(file)) continue;
      if (files.size % 64 === 0 && isOver()) {
        isWhole = false;
        break;
      }
      const stat = statOf(file);
      if (stat === undefined || own.has(`${stat.dev} ${stat.ino}`)) continue;
      files.set(file, said(stat));
      if (stat.isDirectory()) folders.push(file);
    }
    if (isWhole) whole.add(folder);
    else notExamined ??= "files";
  }
  return { files, whole, notExamined };
}

/** undefined: it cannot be read, or was removed meanwhile. */
function namesIn(
  folder: string,
  most: number,
): { readonly found: readonly string[]; readonly isWhole: boolean } | undefined {
  try {
    using entries = opendirSync(folder);
    const found: string[] = [];
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync()) {
      if (found.length >= most) return { found, isWhole: false };
      found.push(entry.name);
    }
    return { found: found.sort(), isWhole: true };
  } catch {
    return undefined;
  }
}

function statOf(file: string): BigIntStats | undefined {
  try {
    return lstatSync(file, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** The time of the last change of a file's facts is not set by anybody but the kernel. Folders change with what is in them. */
function said(stat: BigIntStats): string {
  const { mode, ino, size, mtimeNs, ctimeNs } = stat;
  return stat.isDirectory() ? `${mode}` : `${mode} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}

/** What this process prints may go to a file of the workspace. */
function ownOutputs(): ReadonlySet<string> {
  const own = [0, 1, 2].flatMap((descriptor) => {
    try {
      const { dev, ino } = fstatSync(descriptor, { bigint: true });
      return [`${dev} ${ino}`];
    } catch {
      return [];
    }
  });
  return new Set(own);
}

export function difference(
  before: FileList,
  after: FileList,
): Pick<Compared, "files" | "changed" | "more" | "notExamined"> {
  const found: Compared["changed"] = [];
  for (const [file, was] of before.files) {
    const now = after.files.get(file);
    if (now === undefined) {
      if (isGone(file, after)) found.push({ path: file, change: "removed" });
    } else if (now !== was) found.push({ path: file, change: "changed" });
  }
  for (const file of after.files.keys())
    if (!before.files.has(file) && before.whole.has(path.dirname(file))) found.push({ path: file, change: "added" });
  const changed = found.sort((one, other) => (one.path < other.path ? -1 : 1)).slice(0, MAX_CHANGED);
  const notExamined = before.notExamined ?? after.notExamined;
  return {
    files: before.files.size,
    changed,
    ...(found.length > changed.length ? { more: found.length - changed.length } : {}),
    ...(notExamined === undefined ? {} : { notExamined }),
  };
}

/** With the folder around it, or alone. */
function isGone(file: string, { files, whole }: FileList): boolean {
  const folder = path.dirname(file);
  return (
    whole.has(folder) ||
    (!files.has(folder) && path.dirname(folder) !== folder && isGone(folder, { files, whole, notExamined: undefined }))
  );
}
