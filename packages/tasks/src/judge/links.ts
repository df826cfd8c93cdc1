/**
 * Links that the agent made and that lead elsewhere. Out of the workspace lies what was never frozen and may be the agent's own:
 * another task's workspace, a second mount of this one, a folder that it may write. Whoever reads through one to what is not
 * delivered takes something of the beginning for the work: a result that is a link to the file it is compared with. Pure.
 */
import { visibleName } from "@heddle/protocol";
import { toText } from "@heddle/tools/raw-path";
import type { Ran } from "../checks/run-check.ts";
import { listed } from "../checks/shown.ts";
import { foldersOf, type Change, type Manifest, type RawPath } from "../tree/manifest.ts";
import { unionTree, type UnionTree } from "../tree/union-tree.ts";
import { reasonOf, type Reason } from "./pick.ts";

/**
 * Of the changes that are in a room together. A link of the beginning that leads out stays. One that leads out only through
 * what the agent did to other links makes all of these count.
 */
export function linksOut(base: Manifest, picked: readonly Change[], root: string): ReadonlySet<RawPath> {
  const linked = picked.filter(({ now, before }) => now?.kind === "link" || before?.kind === "link");
  if (linked.length === 0) return new Set();
  const tree = unionTree(base, picked, root);
  const out = linked.filter(({ path, now }) => now?.kind === "link" && leadsOut(tree, path));
  if (out.length > 0) return new Set(out.map(({ path }) => path));
  return turnsOwnersLink(base, { tree, linked, root }) ? new Set(linked.map(({ path }) => path)) : new Set();
}

/** By its text where it leads nowhere yet: a check may make the folder that is missing. */
function leadsOut(tree: UnionTree, path: RawPath): boolean {
  const end = tree.resolve(path);
  return end.kind === "outside" || (end.kind === "missing" && climbsOut(end.path));
}

function climbsOut(path: RawPath): boolean {
  let depth = 0;
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    depth += part === ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

function turnsOwnersLink(
  base: Manifest,
  { tree, linked, root }: { readonly tree: UnionTree; readonly linked: readonly Change[]; readonly root: string },
): boolean {
  const before = unionTree(base, [], root);
  const changed = new Set(linked.map(({ path }) => path));
  for (const [path, { kind }] of base) {
    if (kind !== "link" || changed.has(path)) continue;
    // Through a folder that is none any more nobody comes to it.
    if ([...foldersOf(path)].some((folder) => tree.get(folder)?.kind !== "folder")) continue;
    if (leadsOut(tree, path) && !leadsOut(before, path)) return true;
  }
  return false;
}

/** Links to what is not delivered that a check followed; where reads are not known, all of them. */
export function linksThrough(
  base: Manifest,
  picked: readonly Change[],
  { ran, root }: { readonly ran: readonly Ran[]; readonly root: string },
): readonly Change[] {
  const links = picked.filter(({ now }) => now?.kind === "link");
  if (links.length === 0) return [];
  const own = new Set(picked.map(({ path }) => path));
  const tree = unionTree(base, picked, root);
  const isRead = (path: RawPath): boolean => ran.some(({ reads }) => reads === undefined || reads.has(path));
  return links.filter(({ path }) => {
    const end = tree.resolve(path);
    return end.kind === "found" && !own.has(end.path) && isRead(path);
  });
}

export function linkReason(links: readonly Change[]): Reason {
  const names = links.map(
    ({ path, now }) => `${visibleName(toText(path))} to ${visibleName(toText(now?.target ?? ""))}`,
  );
  const message = `the checks read through delivered links to what is not delivered: ${listed(names, 10)}`;
  return reasonOf(
    "link",
    message,
    links.map(({ path }) => toText(path)),
  );
}
