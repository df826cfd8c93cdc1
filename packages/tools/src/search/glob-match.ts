/**
 * Glob patterns for relative paths: `*`, `?`, `[a-z]`, `{a,b}` and `**`. Matching takes time in proportion to pattern times
 * path, whatever the pattern; it is not compiled to a regular expression, which a hostile pattern could make slow.
 */
import { HeddleError } from "@heddle/protocol";

const MAX_ALTERNATIVES = 64;
const MAX_PATTERN_CHARS = 1024;

export type GlobMatcher = (path: string) => boolean;

export function globMatcher(pattern: string): GlobMatcher {
  if (pattern.length > MAX_PATTERN_CHARS) {
    throw new HeddleError("tool.failed", `a glob pattern must not exceed ${MAX_PATTERN_CHARS} characters`);
  }
  const alternatives = expandBraces(pattern.replace(/^\.\//, "")).map((one) => one.split("/"));
  return (path) => {
    const parts = path.split("/");
    return alternatives.some((wanted) => matchParts(wanted, parts));
  };
}

/** `**` matches any number of parts. Only the last one seen is worth going back to. */
function matchParts(wanted: readonly string[], parts: readonly string[]): boolean {
  return matchWithStars({
    patternLength: wanted.length,
    textLength: parts.length,
    isStar: (index) => wanted[index] === "**",
    matches: (index, at) => matchPart(wanted[index] ?? "", parts[at] ?? ""),
  });
}

function matchPart(pattern: string, text: string): boolean {
  const tokens = tokensOf(pattern);
  const characters = Array.from(text);
  return matchWithStars({
    patternLength: tokens.length,
    textLength: characters.length,
    isStar: (index) => tokens[index]?.kind === "star",
    matches: (index, at) => {
      const token = tokens[index];
      const character = characters[at] ?? "";
      if (token?.kind === "any") return true;
      if (token?.kind === "literal") return token.character === character;
      return (
        token?.kind === "class" &&
        token.isNegated !== token.ranges.some(([low, high]) => low <= character && character <= high)
      );
    },
  });
}

interface Matching {
  readonly patternLength: number;
  readonly textLength: number;
  isStar(index: number): boolean;
  matches(index: number, at: number): boolean;
}

function matchWithStars(matching: Matching): boolean {
  const { patternLength, textLength } = matching;
  let index = 0;
  let at = 0;
  let star = -1;
  let starAt = 0;
  while (at < textLength) {
    if (index < patternLength && matching.isStar(index)) {
      star = index;
      starAt = at;
      index += 1;
    } else if (index < patternLength && matching.matches(index, at)) {
      index += 1;
      at += 1;
    } else if (star !== -1) {
      starAt += 1;
      at = starAt;
      index = star + 1;
    } else return false;
  }
  while (index < patternLength && matching.isStar(index)) index += 1;
  return index === patternLength;
}

type Token =
  | { readonly kind: "star" }
  | { readonly kind: "any" }
  | { readonly kind: "literal"; readonly character: string }
  | { readonly kind: "class"; readonly isNegated: boolean; readonly ranges: readonly (readonly [string, string])[] };

function tokensOf(pattern: string): Token[] {
  const tokens: Token[] = [];
  const characters = Array.from(pattern);
  for (let index = 0; index < characters.length; index += 1) {
    const character = characters[index] ?? "";
    const end = character === "[" ? characters.indexOf("]", index + 2) : -1;
    if (character === "*") tokens.push({ kind: "star" });
    else if (character === "?") tokens.push({ kind: "any" });
    else if (end !== -1) {
      tokens.push(classOf(characters.slice(index + 1, end)));
      index = end;
    } else tokens.push({ kind: "literal", character });
  }
  return tokens;
}

function classOf(characters: readonly string[]): Token {
  const isNegated = characters[0] === "!" || characters[0] === "^";
  const body = isNegated ? characters.slice(1) : characters;
  const ranges: [string, string][] = [];
  for (let index = 0; index < body.length; index += 1) {
    const low = body[index] ?? "";
    const high = body[index + 1] === "-" ? body[index + 2] : undefined;
    ranges.push([low, high ?? low]);
    if (high !== undefined) index += 2;
  }
  return { kind: "class", isNegated, ranges };
}

function expandBraces(pattern: string): string[] {
  let open = [pattern];
  for (;;) {
    const next = open.flatMap(expandOne);
    if (next.length > MAX_ALTERNATIVES) {
      throw new HeddleError("tool.failed", `a glob pattern must not have more than ${MAX_ALTERNATIVES} alternatives`);
    }
    if (next.length === open.length) return next;
    open = next;
  }
}

/** The innermost braces first, so that nested ones need no recursion. */
function expandOne(pattern: string): string[] {
  const match = /\{([^{},]*(?:,[^{},]*)+)\}/.exec(pattern);
  if (match === null) return [pattern];
  const before = pattern.slice(0, match.index);
  const after = pattern.slice(match.index + match[0].length);
  return (match[1] ?? "").split(",").map((choice) => before + choice + after);
}
