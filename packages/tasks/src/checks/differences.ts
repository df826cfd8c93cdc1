/** What is not as it was when the task began, glob by glob, by content alone. */
import type { CheckContext } from "./check.ts";
import { globOf } from "./globs.ts";

export type Differences =
  | {
      readonly kind: "known";
      /** By glob. */
      readonly changed: readonly (readonly string[])[];
      /** Globs that match nothing, now or then. */
      readonly empty: readonly string[];
    }
  | { readonly kind: "unknown"; readonly message: string };

export async function differences(globs: readonly string[], { files, baseline }: CheckContext): Promise<Differences> {
  if (baseline.isTruncated) {
    return {
      kind: "unknown",
      message: "there were more files than a task remembers when it began; name fewer of them",
    };
  }
  const changed: string[][] = [];
  const empty: string[] = [];
  for (const pattern of globs) {
    const glob = globOf(pattern);
    const now = await files.find([pattern]);
    if (now.isPartial) return { kind: "unknown", message: `not everything in ${pattern} could be looked at` };
    const before = Object.keys(baseline.files).filter((path) => glob.matches(path));
    const both = [...new Set([...before, ...now.entries.map(({ path }) => path)])];
    if (both.length === 0) empty.push(pattern);
    const hashes = await files.hashes(both);
    changed.push(both.filter((path) => (hashes.get(path) ?? "") !== (baseline.files[path] ?? "")).toSorted());
  }
  return { kind: "known", changed, empty };
}
