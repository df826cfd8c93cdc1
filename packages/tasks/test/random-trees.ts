/** Small trees made by chance from a number, things that agents do to them, and a look at them that shares nothing with the product. */
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";

export type Chance = (below: number) => number;

export function chanceOf(seed: number): Chance {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c_1b_3c_6d) + 0x9e_37_79_b9;
    const mixed = Math.imul(state ^ (state >>> 12), 0x29_7a_2d_39);
    return ((mixed ^ (mixed >>> 15)) >>> 0) % below;
  };
}

/** One character for each byte. */
const NAMES = [
  "a",
  "b.js",
  "-rf",
  "with space",
  "odd-\xff\xfe",
  "\xc3\xa4.txt",
  "new\nline",
  "a.b",
  "a-b",
  ".git",
  'quo"te',
  "node_modules",
];
const LINKS = ["a", "../a", "b.js", ".", "..", "/etc/passwd", "nowhere", "a/b.js", "../../..", "odd-\xff\xfe"];
const MODES = [0o644, 0o755, 0o600, 0o444, 0o664];
const FOLDER_MODES = [0o755, 0o700, 0o555, 0o775];

export function bytes(path: string): Buffer {
  return Buffer.from(path, "latin1");
}

export function makeTree(root: string, chance: Chance): void {
  mkdirSync(bytes(root), { recursive: true });
  const folders = [root];
  for (let count = 4 + chance(14); count > 0; count -= 1) {
    const at = `${pick(folders, chance)}/${pick(NAMES, chance)}`;
    attempt(() => {
      const sort = chance(10);
      if (sort < 3) {
        mkdirSync(bytes(at));
        folders.push(at);
      } else if (sort < 5) symlinkSync(bytes(pick(LINKS, chance)), bytes(at));
      else writeFileSync(bytes(at), text(chance), { flag: "wx", mode: pick(MODES, chance) });
    });
  }
  for (const folder of folders.slice(1)) if (chance(4) === 0) chmodSync(bytes(folder), pick(FOLDER_MODES, chance));
  for (const { path } of entriesOf(root)) {
    const seconds = 1_600_000_000 + chance(100_000_000) + chance(1_000_000) / 1e6;
    if (chance(2) === 0) lutimesSync(bytes(`${root}/${path}`), seconds, seconds);
  }
}

export function change(root: string, chance: Chance): void {
  for (let count = 1 + chance(10); count > 0; count -= 1) {
    const all = entriesOf(root);
    const folders = [root, ...all.filter(({ kind }) => kind === "folder").map(({ path }) => `${root}/${path}`)];
    const fresh = `${pick(folders, chance)}/${pick(NAMES, chance)}`;
    const some = all.length === 0 ? undefined : `${root}/${pick(all, chance).path}`;
    attempt(() =>
      changeOne(some ?? fresh, fresh, { chance, other: `${pick(folders, chance)}/${pick(NAMES, chance)}` }),
    );
  }
}

function changeOne(some: string, fresh: string, { chance, other }: { chance: Chance; other: string }): void {
  const isLink = lstatSync(bytes(some), { throwIfNoEntry: false })?.isSymbolicLink() === true;
  const isFolder = lstatSync(bytes(some), { throwIfNoEntry: false })?.isDirectory() === true;
  switch (chance(12)) {
    case 0:
      return writeFileSync(bytes(fresh), text(chance), { flag: "wx" });
    case 1:
      return void mkdirSync(bytes(`${fresh}/a/b.js`), { recursive: true });
    case 2:
      return symlinkSync(bytes(pick(LINKS, chance)), bytes(fresh));
    case 3:
      return rmSync(bytes(some), { recursive: true, force: true });
    case 4:
      return renameSync(bytes(some), bytes(other));
    case 5:
      return isLink || isFolder ? undefined : appendFileSync(bytes(some), text(chance));
    case 6:
      return isLink ? undefined : chmodSync(bytes(some), pick(isFolder ? FOLDER_MODES : MODES, chance));
    case 7:
      return lutimesSync(bytes(some), 1_700_000_000, 1_700_000_000);
    case 8: {
      rmSync(bytes(some), { recursive: true, force: true });
      return symlinkSync(bytes(pick(LINKS, chance)), bytes(some));
    }
    case 9: {
      rmSync(bytes(some), { recursive: true, force: true });
      mkdirSync(bytes(some));
      return writeFileSync(bytes(`${some}/a`), text(chance));
    }
    case 10: {
      if (isLink || isFolder) return;
      const content = readFileSync(bytes(some));
      writeFileSync(bytes(some), "something else");
      return writeFileSync(bytes(some), content);
    }
    default:
      return isLink || isFolder ? undefined : linkSync(bytes(some), bytes(fresh));
  }
}

export interface Looked {
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "other";
  readonly mode: number;
  readonly content: string;
  readonly mtimeMs: number;
}

/** In the order of `find | sort`. */
export function entriesOf(root: string, below = ""): Looked[] {
  const found: Looked[] = [];
  for (const name of readdirSync(bytes(`${root}/${below}`), { encoding: "latin1" }).toSorted()) {
    const path = `${below}${name}`;
    const at = bytes(`${root}/${path}`);
    const stat = lstatSync(at);
    const base = { path, mode: stat.mode & 0o7777, mtimeMs: stat.mtimeMs };
    if (stat.isDirectory()) found.push({ ...base, kind: "folder", content: "" }, ...entriesOf(root, `${path}/`));
    else if (stat.isSymbolicLink()) found.push({ ...base, mode: 0, kind: "link", content: readlinkSync(at, "latin1") });
    else if (stat.isFile()) found.push({ ...base, kind: "file", content: hashOf(readFileSync(at)) });
    else found.push({ ...base, kind: "other", content: "" });
  }
  return found;
}

function withoutTimes(entries: readonly Looked[]): string[] {
  return entries.map(({ path, kind, mode, content }) => JSON.stringify([path, kind, mode, content]));
}

/** What is in one and not in the other, by path, kind, mode and content; and by time, to the microsecond, unless it is left out. */
export function differences(
  found: readonly Looked[],
  wanted: readonly Looked[],
  { withTimes }: { readonly withTimes: boolean },
): string[] {
  const [one, other] = [new Set(withoutTimes(found)), new Set(withoutTimes(wanted))];
  const wrong = [
    ...[...one].filter((line) => !other.has(line)).map((line) => `+ ${line}`),
    ...[...other].filter((line) => !one.has(line)).map((line) => `- ${line}`),
  ];
  if (!withTimes) return wrong;
  const times = new Map(wanted.map(({ path, mtimeMs }) => [path, mtimeMs]));
  const late = found.filter(({ path, mtimeMs }) => Math.abs(mtimeMs - (times.get(path) ?? 0)) > 0.0015);
  return [...wrong, ...late.map(({ path, mtimeMs }) => `time of ${JSON.stringify(path)}: ${mtimeMs}`)];
}

export function hashOf(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function text(chance: Chance): string {
  return `${"line of text\n".repeat(chance(5))}${chance(1_000)}`;
}

function pick<T>(some: readonly T[], chance: Chance): T {
  const picked = some[chance(some.length)];
  if (picked === undefined) throw new Error("nothing to pick from");
  return picked;
}

/** What the system refuses is not done. */
function attempt(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}
