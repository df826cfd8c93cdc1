/**
 * New source that takes the place of an installed module. Without it the checks read a file of that name which tools installed
 * (`.venv/lib/yaml.py`), with it they do not: both are run, and what they read is seen.
 */
import { posix } from "node:path";
import { toText, type RawPath } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { parentOf, type Change, type Manifest } from "../tree/manifest.ts";
import { roleOf } from "./file-role.ts";
import { judgePicked, type ToJudge } from "./judge-picked.ts";
import { subjectOf } from "./named-work.ts";

/** Files that are watched; among more of one name nothing can be told, and the owner is asked. */
const MAX_WATCHED = 1000;

/** Of `found`, in what `toJudge` picks, those that stand where something installed was. */
export async function shadowing(
  checkOptions: CheckOptions,
  { baseline, room }: ToJudge,
  found: readonly Change[],
): Promise<readonly Change[]> {
  const installed = installedAs(room.base.manifest, found);
  const some = found.filter(({ path }) => installed.has(subjectOf(path)));
  const watched = [...installed.values()].flat();
  if (watched.length === 0 || watched.length > MAX_WATCHED) return some;
  const readWith = async (picked: readonly Change[]): Promise<ReadonlySet<RawPath>> => {
    const { ran } = await judgePicked(checkOptions, { baseline, room: { ...room, picked, watched } }, "work");
    return new Set(watched.filter((path) => ran.some(({ reads }) => reads?.has(path) === true)));
  };
  const before = await readWith(room.picked.filter(({ path }) => !some.some((one) => one.path === path)));
  if (before.size === 0) return [];
  const now = await readWith(room.picked);
  const isGone = (path: RawPath): boolean => before.has(path) && !now.has(path);
  return some.filter(({ path }) => installed.get(subjectOf(path))?.some(isGone));
}

/** By name, as `subjectOf` tells it; what a tool made of them to load them sooner too (`__pycache__/yaml.cpython-312.pyc`). */
function installedAs(manifest: Manifest, found: readonly Change[]): ReadonlyMap<string, readonly RawPath[]> {
  const wanted = new Set(found.map(({ path }) => subjectOf(path) + posix.extname(path)));
  const names = new Set(found.map(({ path }) => subjectOf(path)));
  const installed = new Map<string, RawPath[]>();
  for (const [path, { kind }] of manifest) {
    const role = kind === "file" ? roleOf(toText(path)) : "other";
    if (role !== "dependency" && role !== "cache") continue;
    const [first = ""] = posix.basename(path).split(".");
    const name = subjectOf(posix.join(parentOf(path).replace(/(^|\/)__pycache__$/, ""), `${first}.x`));
    if (role === "cache" ? names.has(name) : wanted.has(name + posix.extname(path)))
      installed.set(name, [...(installed.get(name) ?? []), path]);
  }
  return installed;
}
