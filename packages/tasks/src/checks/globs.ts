/** Globs of checks: relative like paths, and told which folders they can match in, so that a walk need not enter the rest. */
import { globMatcher, type GlobMatcher } from "@heddle/tools/files";
import { relativePath } from "./relative-path.ts";

export interface Glob {
  readonly matches: GlobMatcher;
  /** The folders that every match lies in: `src/lib` of `src/lib/**`. */
  readonly fixed: readonly string[];
}

/**
 * What has no wildcard is a file, or a folder with everything in it. A name is itself before it is a pattern, so that
 * `app/[id].ts` is found by its name.
 */
export function globOf(pattern: string): Glob {
  const path = relativePath(pattern);
  const whole = path === "" ? "**" : pattern.endsWith("/") ? `${path}/**` : path;
  const parts = whole.split("/");
  const variable = parts.findIndex((part) => /[*?[{]/.test(part));
  const isMatch = globMatcher(whole);
  const matches: GlobMatcher =
    variable === -1
      ? (found) => found === whole || found.startsWith(`${whole}/`)
      : (found) => found === whole || isMatch(found);
  return { matches, fixed: variable === -1 ? parts : parts.slice(0, variable) };
}

/** Whether something below the folder can match. A skipped folder is entered only when the glob names it. */
export function mayHoldMatches({ fixed }: Glob, folder: string, isSkipped: boolean): boolean {
  const parts = folder.split("/");
  if (isSkipped && fixed[parts.length - 1] !== parts.at(-1)) return false;
  return parts.every((part, index) => fixed[index] === undefined || fixed[index] === part);
}
