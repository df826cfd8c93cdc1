/**
 * Links of the work that lead to what is not delivered. Whoever reads through one takes something of the beginning for the work:
 * a result that is a link to the file it is compared with. Pure.
 */
import { visibleName } from "@heddle/protocol";
import { MAX_WORK_FILES, type WorkReview } from "@heddle/protocol/tasks";
import { toText, type RawPath } from "@heddle/tools/raw-path";
import type { Ran } from "../checks/run-check.ts";
import { listed } from "../checks/shown.ts";
import type { Change, Manifest } from "../tree/manifest.ts";
import { unionTree } from "../tree/union-tree.ts";

/** Links that a check followed; where reads are not known, all of them. */
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

export function linkReason(links: readonly Change[]): WorkReview["reasons"][number] {
  const names = links.map(
    ({ path, now }) => `${visibleName(toText(path))} to ${visibleName(toText(now?.target ?? ""))}`,
  );
  const message = `the checks read through delivered links to what is not delivered: ${listed(names, 10)}`;
  const count = links.length > MAX_WORK_FILES ? { count: links.length } : {};
  return { kind: "link", message, files: links.slice(0, MAX_WORK_FILES).map(({ path }) => toText(path)), ...count };
}
