/** Globs of checks: relative like paths, and told which folders they can match in, so that a walk need not enter the rest. */
import { globMatcher, type GlobMatcher } from "@heddle/tools/files";
import { relativePath } from "./relative-path.ts";

export interface Glob {
  readonly matches: GlobMatcher;
  /** The folders that every match lies in: `src/lib` of `src/lib/**`. */
  readonly fixed: readonly string[];
}

/** A folder by name means everything in it. */
export function globOf(pattern: string): Glob {
  const path = relativePath(pattern);
  const isFolder = pattern.endsWith("/");
  const whole = isFolder || path === "" ? `${path === "" ? "" : `${path}/`}**` : path;
  const parts = whole.split("/");
  const variable = parts.findIndex((part) => /[*?[{]/.test(part));
  const fixed = parts.slice(0, variable === -1 ? -1 : variable);
  return { matches: globMatcher(whole), fixed };
}

/** Whether something below the folder can match. A skipped folder is entered only when the glob names it. */
export function mayHoldMatches({ fixed }: Glob, folder: string, isSkipped: boolean): boolean {
  const parts = folder.split("/");
  if (isSkipped && fixed[parts.length - 1] !== parts.at(-1)) return false;
  return parts.every((part, index) => fixed[index] === undefined || fixed[index] === part);
}
