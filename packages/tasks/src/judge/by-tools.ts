/**
 * New source that a command read and that is not the work: a tool came to it by itself, it is only mentioned, it stands where
 * something else was or is built, or it is prose of which a file of the beginning knows, as a judge knows its list of failures.
 */
import { posix } from "node:path";
import { toText, type RawPath } from "@heddle/tools/raw-path";
import type { CheckOptions } from "../checks/check.ts";
import { leavesOf } from "../checks/names.ts";
import type { Change, FrozenWork } from "../tree/manifest.ts";
import { foundByAnyName } from "./by-other-name.ts";
import { isProse } from "./file-role.ts";
import type { ToJudge } from "./judge-picked.ts";
import { onlyMentioned } from "./led-by-name.ts";
import { ledTo, withoutEnding } from "./led-to.ts";
import { isPlainCommand, wordsOf } from "./named-work.ts";
import { productsAmong } from "./products.ts";
import { shadowing } from "./shadows.ts";

export interface Found {
  /** New source that no check names by its name. */
  readonly found: readonly Change[];
  /** Files of the work that are so by themselves, and that a command read. */
  readonly leading: readonly Change[];
}

/** Of `found`, in what `toJudge` picks. */
export async function foundByTools(
  checkOptions: CheckOptions,
  toJudge: Pick<ToJudge, "baseline" | "room"> & { readonly frozen: FrozenWork },
  { found, leading }: Found,
): Promise<ReadonlySet<Change>> {
  const { room, frozen } = toJudge;
  const led = await ledTo({ ...checkOptions, base: room.base, frozen }, found, leading);
  const loose = found.filter(({ path }) => !led.all.has(path));
  // A command may give the name to a program that looks for it, and the owner's words stay as they are.
  const said = wordsOf(
    leavesOf(checkOptions.spec.checks)
      .filter(isPlainCommand)
      .map(({ run }) => [run].flat().join(" "))
      .join(" "),
  );
  const isSaid = (path: RawPath): boolean => said.has(toText(withoutEnding(posix.basename(path))));
  const mentioned = found.filter(({ path }) => led.all.has(path) && !led.byOwner.has(path) && !isSaid(path));
  const lists = found.filter(({ path }) => isProse(toText(path)) && led.byItsName.has(path) && !led.byOwner.has(path));
  const free = loose.length === 0 ? [] : await foundByAnyName(checkOptions, toJudge, loose);
  return new Set([
    ...lists,
    ...loose.filter((change) => !free.includes(change)),
    ...(await onlyMentioned(checkOptions, toJudge, {
      mentioned,
      texts: [...leading, ...found],
      naming: led.naming,
    })),
    ...(await shadowing(checkOptions, toJudge, found)),
    ...(await productsAmong(checkOptions, toJudge, found)),
  ]);
}
