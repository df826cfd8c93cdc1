/** Which files git ignores by the `.gitignore` and `info/exclude` files of the beginning alone. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { HeddleError } from "@heddle/protocol";
import { toRaw, toSystem, toText } from "@heddle/tools/raw-path";
import type { KeptTree, RawPath } from "../tree/manifest.ts";
import { foldersOf } from "../tree/manifest.ts";
import type { Repository } from "./find-repository.ts";
import { readPlain } from "./git-files.ts";
import { openOwnGit } from "./own-git.ts";
import { outputOf } from "./run-git.ts";

const RULES = ".gitignore";

export interface IgnoreRules {
  readonly base: KeptTree;
  readonly repository: Pick<Repository, "before" | "prefix" | "top">;
  /** What is made there is removed again. */
  readonly scratch: string;
  readonly signal: AbortSignal;
}

export async function ignoredOf(paths: readonly RawPath[], rules: IgnoreRules): Promise<ReadonlySet<RawPath>> {
  if (paths.length === 0) return new Set();
  const { repository, scratch, signal } = rules;
  const folder = await mkdtemp(join(scratch, "rules-"));
  try {
    const exclude = await repository.before?.common.read("info/exclude");
    const more = exclude === undefined ? {} : { exclude };
    const git = await openOwnGit({ folder: join(folder, "git"), objects: [], format: "sha1", signal, ...more });
    const workTree = join(folder, "tree");
    await mkdir(workTree);
    await writeRules(paths, workTree, rules);
    // With `./` in front no name is read as an option or a pattern.
    const asked = paths.map((path) => `./${repository.prefix}${path}\0`).join("");
    const end = await git.try(["check-ignore", "--no-index", "-z", "--stdin"], {
      input: Buffer.from(asked, "latin1"),
      workTree,
    });
    if (end.exitCode > 1) throw new HeddleError("tool.failed", `git check-ignore: ${outputOf(end)}`);
    const found = end.stdout
      .toString("latin1")
      .split("\0")
      .filter((path) => path !== "");
    return new Set(found.map((path) => path.slice(`./${repository.prefix}`.length)));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Of the folders that the paths are in, including those above the workspace. */
async function writeRules(
  paths: readonly RawPath[],
  workTree: string,
  { base, repository: { prefix, top } }: IgnoreRules,
): Promise<void> {
  const folders = new Set<RawPath>([""]);
  for (const path of paths) for (const folder of foldersOf(`${prefix}${path}`)) folders.add(folder);
  for (const folder of folders) {
    const at = folder === "" ? RULES : `${folder}/${RULES}`;
    const rules = at.startsWith(prefix)
      ? base.manifest.get(at.slice(prefix.length))?.kind === "file"
        ? readPlain(toSystem(`${toRaw(base.folder)}/${at.slice(prefix.length)}`))
        : undefined
      : readPlain(join(top, toText(at)));
    if (rules === undefined) continue;
    const to = toSystem(`${toRaw(workTree)}/${at}`);
    await mkdir(typeof to === "string" ? dirname(to) : Buffer.from(dirname(to.toString("latin1")), "latin1"), {
      recursive: true,
    });
    await writeFile(to, rules);
  }
}
