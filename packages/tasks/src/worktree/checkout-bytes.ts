/**
 * What a checkout in the owner's repository makes of delivered files: attributes and settings there may give them other line
 * ends, another encoding, expanded keywords, or run them through a program. The owner's own git is asked, with an index and a
 * folder of Heddle's own, so that no kind of conversion has to be known here.
 */
import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { toRaw, toSystem, type RawPath } from "@heddle/tools/raw-path";
import { blobOf, gitModeOf, readTree, SUBMODULE_MODE } from "../git/git-tree.ts";
import { formatOf } from "../git/names.ts";
import type { OwnGit } from "../git/own-git.ts";
import { linkEntry, type TreeEntry } from "../tree/manifest.ts";
import { kindOf } from "../tree/walk-tree.ts";
import { git as runGit, tryGit } from "./repository-git.ts";

export interface Checkout {
  /** Of the owner. */
  readonly repository: string;
  /** Has the commit. */
  readonly git: OwnGit;
  readonly commit: string;
  /** Delivered, from the top of the repository; what is not in the commit is gone. */
  readonly paths: Iterable<RawPath>;
  /** Of Heddle's own; gone afterwards. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/** Those that would not be the bytes of the commit. */
export async function changedByCheckout({
  repository,
  git,
  commit,
  folder,
  signal,
  ...options
}: Checkout): Promise<readonly RawPath[]> {
  const tree = await readTree(git, commit);
  const wanted = [...options.paths].flatMap((path) => {
    const entry = tree.get(path);
    return entry === undefined || entry.mode === SUBMODULE_MODE ? [] : [{ path, ...entry }];
  });
  if (wanted.length === 0) return [];
  const out = join(folder, "checkout");
  await mkdir(out);
  const variables = {
    GIT_INDEX_FILE: join(folder, "checkout-index"),
    // In quotes, because a colon would end it.
    GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(join(git.folder, "objects")),
  };
  await runGit(repository, ["read-tree", commit], { signal, variables });
  const input = Buffer.from(wanted.map(({ path }) => `${path}\0`).join(""), "latin1");
  // One that cannot be converted is not written, which is seen below.
  await tryGit(repository, ["checkout-index", `--prefix=${out}/`, "-z", "--stdin"], { signal, variables, input });
  const changed: RawPath[] = [];
  for (const { path, mode, object } of wanted) {
    const at = toSystem(`${toRaw(out)}/${path}`);
    const entry = entryAt(at);
    const isSame =
      entry !== undefined && gitModeOf(entry) === mode && (await blobOf(entry, at, formatOf(commit))) === object;
    if (!isSame) changed.push(path);
  }
  return changed;
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
