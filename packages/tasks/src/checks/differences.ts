/** What is not as it was when the task began, glob by glob: by content and kind, never by time. */
import { toText } from "@heddle/tools/raw-path";
import type { CheckContext } from "./check.ts";
import { finds, globOf } from "./globs.ts";

export interface Differences {
  /** By glob. */
  readonly changed: readonly (readonly string[])[];
  /** Globs that match nothing, now or then. */
  readonly empty: readonly string[];
}

export async function differences(
  patterns: readonly string[],
  { files, room }: Pick<CheckContext, "files" | "room">,
): Promise<Differences> {
  const known = room.picked
    .filter(({ now, before }) => [now, before].some((entry) => entry !== undefined && entry.kind !== "folder"))
    .filter(({ now, before }) => now?.kind !== before?.kind || now?.sha256 !== before?.sha256)
    .map(({ path }) => toText(path));
  const changed: string[][] = [];
  const empty: string[] = [];
  for (const pattern of patterns) {
    const glob = globOf(pattern);
    const here = known.filter((path) => finds(glob, path));
    changed.push(here.toSorted());
    if (here.length === 0 && (await files.find([pattern])).entries.length === 0) empty.push(pattern);
  }
  return { changed, empty };
}
