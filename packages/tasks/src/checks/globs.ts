/** Globs of checks, with the folders they can match in, so that a walk skips the rest. */
import { globMatcher, type GlobMatcher } from "@heddle/tools/files";
import { relativePath } from "./relative-path.ts";

export interface Glob {
  readonly matches: GlobMatcher;
  /** The folders that every match is in: `src/lib` of `src/lib/**`. */
  readonly fixed: readonly string[];
}

/**
 * Without a wildcard it is a file, or a folder with its content. A pattern also matches its own text, so that `app/[id].ts`
 * is found by its name.
 */
export function globOf(pattern: string): Glob {
  if (pattern.startsWith(LITERAL) && pattern.length > 1) {
    const path = pattern.slice(1);
    return { matches: (found) => found === path, fixed: path.split("/") };
  }
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

/** Before a pattern: the rest is one literal path, without wildcards and without the content of a folder. */
const LITERAL = "\\";

/** The glob of exactly one path; `isFolder`: it is or was a folder, whose plain name would include its content. */
export function literalGlob(path: string, isFolder = false): string {
  return isFolder || /[*?[{]|^[!\\]|^\.\/|\/$/.test(path) ? `${LITERAL}${path}` : path;
}

/** Whether something below the folder can match. A skipped folder is entered only when the glob names it. */
export function mayHoldMatches({ fixed }: Glob, folder: string, isSkipped: boolean): boolean {
  const parts = folder.split("/");
  if (isSkipped && fixed[parts.length - 1] !== parts.at(-1)) return false;
  return parts.every((part, index) => fixed[index] === undefined || fixed[index] === part);
}

/** Made by tools; entered only when a glob names them. */
export const SKIPPED: ReadonlySet<string> = new Set([".git", "node_modules", ".hg", ".svn", "__pycache__", ".venv"]);

/** Whether a walk for the glob reaches the path and matches it. */
export function finds(glob: Glob, path: string): boolean {
  if (!glob.matches(path)) return false;
  const parts = path.split("/");
  return parts
    .slice(0, -1)
    .every((part, index) => !SKIPPED.has(part) || mayHoldMatches(glob, parts.slice(0, index + 1).join("/"), true));
}

/** `!glob` excludes from what the others match. */
export function globList(patterns: readonly string[]): (path: string) => boolean {
  const taken = patterns.filter((pattern) => !pattern.startsWith("!")).map(globOf);
  const free = patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => globOf(pattern.slice(1)));
  return (path) => taken.some((glob) => finds(glob, path)) && !free.some(({ matches }) => matches(path));
}
