/** Reads the refs of a git folder. Names that git would not make are ignored. */
import { HeddleError } from "@heddle/protocol";
import type { GitFiles } from "./git-files.ts";
import { isObjectName, isRefName } from "./names.ts";

/** As many symbolic refs as git follows. */
const MAX_STEPS = 5;
const MAX_REFS = 100_000;

export interface Head {
  readonly commit: string;
  /** Without `refs/heads/`; absent when no branch is checked out. */
  readonly branch?: string;
}

export interface GitNames {
  /** Where HEAD is; of a linked work tree not the folder of the refs. */
  readonly own: GitFiles;
  readonly common: GitFiles;
}

/** undefined: no commit yet. Throws `tool.failed` for a broken HEAD. */
export async function readHead({ own, common }: GitNames): Promise<Head | undefined> {
  const target = await readPointer(own, "HEAD");
  if (target === undefined)
    throw new HeddleError("tool.failed", "the HEAD of the repository names no branch and no commit");
  if (isObjectName(target)) return { commit: target };
  const refs = await packedRefs(common);
  const commit = await follow(common, refs, target);
  const branch = target.startsWith("refs/heads/") ? { branch: target.slice("refs/heads/".length) } : {};
  return commit === undefined ? undefined : { commit, ...branch };
}

export async function readRefs({ common }: GitNames): Promise<ReadonlyMap<string, string>> {
  const found = new Map(await packedRefs(common));
  const packed = new Map(found);
  for (const name of await common.below("refs")) {
    if (!isRefName(name)) continue;
    const commit = await follow(common, packed, name);
    if (commit !== undefined) found.set(name, commit);
    if (found.size > MAX_REFS) throw new HeddleError("limit.reached", `the repository has more than ${MAX_REFS} refs`);
  }
  return found;
}

async function follow(files: GitFiles, packed: ReadonlyMap<string, string>, name: string): Promise<string | undefined> {
  let at = name;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const target = await readPointer(files, at);
    if (target === undefined) return packed.get(at);
    if (isObjectName(target)) return target;
    at = target;
  }
  return undefined;
}

/** The object or the other ref that a ref file names. A link to a branch is an old form of the latter. */
async function readPointer(files: GitFiles, path: string): Promise<string | undefined> {
  const entry = await files.entry(path);
  if (entry?.kind === "link") return isRefName(entry.to) ? entry.to : undefined;
  const text = (await files.read(path))?.toString("latin1").replace(/\s+$/, "");
  if (text === undefined) return undefined;
  const name = /^ref:\s*(.*)$/s.exec(text)?.[1] ?? text;
  return isObjectName(text) || isRefName(name) ? name : undefined;
}

async function packedRefs(files: GitFiles): Promise<ReadonlyMap<string, string>> {
  const text = (await files.read("packed-refs"))?.toString("latin1") ?? "";
  const found = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [object = "", name = ""] = line.split(" ", 2);
    if (isObjectName(object) && isRefName(name) && line === `${object} ${name}`) found.set(name, object);
  }
  if (found.size > MAX_REFS) throw new HeddleError("limit.reached", `the repository has more than ${MAX_REFS} refs`);
  return found;
}
