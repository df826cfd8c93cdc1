/**
 * Finds the line a TOML key is written on, for messages. It reads only as much of TOML as that needs: headers, keys,
 * and where strings and arrays over several lines end. The values come from a real parser.
 */

/** The line (from 1) of `path`, or of its nearest ancestor that is written out; undefined when neither is. */
export function lineOfKey(text: string, path: readonly string[]): number | undefined {
  const lines = keyLines(text);
  for (let length = path.length; length > 0; length -= 1) {
    const line = lines.get(pathKey(path.slice(0, length)));
    if (line !== undefined) return line;
  }
  return undefined;
}

function keyLines(text: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const note = (path: readonly string[], line: number): void => {
    const key = pathKey(path);
    if (!found.has(key)) found.set(key, line);
  };
  let table: readonly string[] = [];
  let open: OpenValue = { quote: undefined, depth: 0 };
  for (const [index, line] of text.split("\n").entries()) {
    const wasInside = open.quote !== undefined || open.depth > 0;
    const header = wasInside ? null : /^\s*\[{1,2}([^\]]*)\]/.exec(line);
    if (header?.[1] !== undefined) {
      table = splitKey(header[1]);
      note(table, index + 1);
      continue;
    }
    const assigned = wasInside ? undefined : keyBeforeEquals(line);
    if (assigned !== undefined) note([...table, ...splitKey(assigned.key)], index + 1);
    open = scanValue(assigned === undefined && !wasInside ? "" : (assigned?.rest ?? line), open);
  }
  return found;
}

/** What a value has left open at the end of a line: a long string, or brackets. */
interface OpenValue {
  readonly quote: string | undefined;
  readonly depth: number;
}

function scanValue(line: string, before: OpenValue, { keepsQuote = false } = {}): OpenValue {
  let { quote, depth } = before;
  for (let at = 0; at < line.length; at += 1) {
    const three = line.slice(at, at + 3);
    const char = line.charAt(at);
    if (quote !== undefined) {
      if (char === "\\" && quote.startsWith('"')) at += 1;
      else if (line.startsWith(quote, at)) {
        at += quote.length - 1;
        quote = undefined;
      }
    } else if (char === "#") break;
    else if (three === '"""' || three === "'''") {
      quote = three;
      at += 2;
    } else if (char === '"' || char === "'") quote = char;
    else if (char === "[" || char === "{") depth += 1;
    else if (char === "]" || char === "}") depth = Math.max(0, depth - 1);
  }
  // Only long strings cross the end of a line.
  return { quote: keepsQuote || quote?.length === 3 ? quote : undefined, depth };
}

/** Parts of a key have a dot between them, so that there is one way to read a line. */
const PART = String.raw`(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)`;
const KEY_AND_REST = new RegExp(String.raw`^\s*(${PART}(?:\s*\.\s*${PART})*)\s*=(.*)$`);

function keyBeforeEquals(line: string): { readonly key: string; readonly rest: string } | undefined {
  const match = KEY_AND_REST.exec(line);
  return match?.[1] === undefined ? undefined : { key: match[1], rest: match[2] ?? "" };
}

/** The key of a line and where its value begins; undefined for a line that assigns nothing. */
export function keyAndValue(line: string): { readonly key: readonly string[]; readonly valueAt: number } | undefined {
  const bare = line.replace(/\r?\n$/, "");
  const assigned = keyBeforeEquals(bare);
  if (assigned === undefined) return undefined;
  return { key: splitKey(assigned.key), valueAt: bare.length - assigned.rest.trimStart().length };
}

/** Where the value that begins at `start` ends: before the line break, a comment, and the blanks in front of those. */
export function valueEnd(text: string, start: number): number {
  let open: OpenValue = { quote: undefined, depth: 0 };
  for (let at = start; ;) {
    const found = text.indexOf("\n", at);
    const end = found < 0 ? text.length : found;
    const line = text.slice(at, end);
    const before = open;
    open = scanValue(line, before);
    if ((open.quote === undefined && open.depth === 0) || found < 0) {
      return at + withoutComment(line, before).trimEnd().length;
    }
    at = end + 1;
  }
}

function withoutComment(line: string, before: OpenValue): string {
  for (let length = 0; length < line.length; length += 1) {
    if (line.charAt(length) !== "#") continue;
    // A mark inside a string leaves that string open in what stands before it.
    const upTo = scanValue(line.slice(0, length), before, { keepsQuote: true });
    if (upTo.quote === undefined) return line.slice(0, length);
  }
  return line;
}

export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** `a."b.c".d` → ["a", "b.c", "d"]. */
export function splitKey(key: string): readonly string[] {
  const parts = key.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[^.\s"']+/g) ?? [];
  return parts.map((part) => (/^["']/.test(part) ? part.slice(1, -1) : part));
}

function pathKey(path: readonly string[]): string {
  return path.join("\u0000");
}
