/**
 * What a checkout in the owner's repository would make of delivered files: attributes and settings there may change line
 * ends, encoding or keywords, or run a filter. The owner's git is asked, with an index and a folder of Heddle's own.
 */
import { lstatSync, readFileSync, readlinkSync, type Stats } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, posix } from "node:path";
import { toRaw, toSystem, type RawPath } from "@heddle/tools/raw-path";
import { blobOf, gitModeOf, readTree, SUBMODULE_MODE } from "../git/git-tree.ts";
import { formatOf } from "../git/names.ts";
import type { OwnGit } from "../git/own-git.ts";
import { linkEntry, type TreeEntry } from "../tree/manifest.ts";
import { kindOf } from "../tree/walk-tree.ts";
import { git as runGit, tryGit } from "./repository-git.ts";

export interface Checkout {
  readonly repository: string;
  readonly git: OwnGit;
  readonly commit: string;
  /** Delivered paths from the top of the repository; those not in the commit were removed. */
  readonly paths: Iterable<RawPath>;
  /** Removed afterwards. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

export interface Converted {
  /** Paths whose bytes would differ from the commit. */
  readonly changed: readonly RawPath[];
  /** Paths where only the line ends would differ, by rules of the owner. */
  readonly lineEnds: readonly RawPath[];
}

export async function changedByCheckout({
  repository,
  git,
  commit,
  folder,
  signal,
  ...options
}: Checkout): Promise<Converted> {
  const tree = await readTree(git, commit);
  const paths = [...options.paths];
  const wanted = paths.flatMap((path) => {
    const entry = tree.get(path);
    return entry === undefined || entry.mode === SUBMODULE_MODE ? [] : [{ path, ...entry }];
  });
  if (wanted.length === 0) return { changed: [], lineEnds: [] };
  const out = join(folder, "checkout");
  await mkdir(out);
  const variables = {
    GIT_INDEX_FILE: join(folder, "checkout-index"),
    // Quoted, because a colon separates.
    GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(join(git.folder, "objects")),
  };
  await runGit(repository, ["read-tree", commit], { signal, variables });
  const input = Buffer.from(wanted.map(({ path }) => `${path}\0`).join(""), "latin1");
  // A file that cannot be converted is not written, which is noticed below.
  await tryGit(repository, ["checkout-index", `--prefix=${out}/`, "-z", "--stdin"], { signal, variables, input });
  const hasOwnRules = paths.some((path) => posix.basename(path) === ".gitattributes");
  const changed: RawPath[] = [];
  const lineEnds: RawPath[] = [];
  for (const { path, mode, object } of wanted) {
    const at = toSystem(`${toRaw(out)}/${path}`);
    const entry = entryAt(at);
    const isKind = entry !== undefined && gitModeOf(entry) === mode;
    if (isKind && (await blobOf(entry, at, formatOf(commit))) === object) continue;
    const isText = isKind && !hasOwnRules && entry.kind === "file" && entry.size <= MAX_TEXT_BYTES;
    const isLineEnds = isText && lines(readFileSync(at)) === lines(await git.run(["cat-file", "blob", object]));
    (isLineEnds ? lineEnds : changed).push(path);
  }
  return { changed, lineEnds };
}

/** A larger file is not text that anybody edits. */
const MAX_TEXT_BYTES = 8 * 1024 * 1024;

function lines(bytes: Buffer): string {
  return bytes.toString("latin1").replaceAll("\r\n", "\n");
}

function entryAt(at: string | Buffer): TreeEntry | undefined {
  let stat: Stats;
  try {
    stat = lstatSync(at);
  } catch {
    return undefined;
  }
  const kind = kindOf(stat);
  if (kind === "link") return linkEntry(readlinkSync(at, { encoding: "latin1" }), { mode: 0o777, mtimeNs: 0n });
  return { kind, mode: stat.mode & 0o7777, size: stat.size, mtimeNs: 0n, sha256: "" };
}
