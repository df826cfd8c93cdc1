/**
 * Changes one key of a TOML text and leaves every other character as it is: comments, order, blank lines. The result is
 * parsed again and must say exactly what the old text said plus the change; a text too unusual for that is refused.
 */
import { isDeepStrictEqual } from "node:util";
import { HeddleError } from "@heddle/protocol";
import { stringify } from "smol-toml";
import { exactToml } from "./parse-toml.ts";
import { isTable, keyAndValue, splitKey, valueEnd } from "./toml-lines.ts";

export type TomlScalar = string | number | bigint | boolean | readonly TomlScalar[];

export function setTomlKey(text: string, key: readonly string[], value: TomlScalar): string {
  return edited(text, key, value);
}

/** The text itself when the key is not in it. */
export function unsetTomlKey(text: string, key: readonly string[]): string {
  return edited(text, key, undefined);
}

function edited(text: string, key: readonly string[], value: TomlScalar | undefined): string {
  const wanted = exactToml(text);
  const changed = applyTo(wanted, key, value) ? change(text, key, value) : undefined;
  if (changed !== undefined && isSame(changed, wanted)) return changed;
  throw new HeddleError(
    "config.invalid",
    `${key.join(".")} is written in a way that cannot be changed from here; edit the file by hand`,
  );
}

/** False where something that is no table is in the way. */
function applyTo(target: Record<string, unknown>, key: readonly string[], value: TomlScalar | undefined): boolean {
  const [first, ...rest] = key;
  if (first === undefined) return false;
  const existing = Object.hasOwn(target, first) ? target[first] : undefined;
  if (rest.length === 0) {
    if (isTable(existing)) return false;
    if (value === undefined) delete target[first];
    else target[first] = value;
    return true;
  }
  if (existing === undefined && value === undefined) return true;
  if (existing !== undefined && !isTable(existing)) return false;
  const child = existing ?? {};
  target[first] = child;
  return applyTo(child, rest, value);
}

function isSame(text: string, wanted: unknown): boolean {
  try {
    return isDeepStrictEqual(plain(exactToml(text)), plain(wanted));
  } catch {
    // The changed text is no TOML: the key cannot be written there.
    return false;
  }
}

/** Tables of a parser and tables made here compare equal. An empty one says nothing. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!isTable(value)) return value;
  const entries = Object.entries(value).map(([key, child]) => [key, plain(child)] as const);
  return new Map(entries.filter(([, child]) => !(child instanceof Map && child.size === 0)));
}

interface Assignment {
  readonly path: readonly string[];
  readonly lineStart: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

interface Section {
  readonly path: readonly string[];
  /** Where a new line of this table goes: behind its header, or behind its last assignment. */
  end: number;
}

function change(text: string, key: readonly string[], value: TomlScalar | undefined): string {
  const { assignments, sections } = outline(text);
  const found = assignments.find(({ path }) => isPath(path, key));
  if (value === undefined) {
    if (found === undefined) return text;
    return text.slice(0, found.lineStart) + text.slice(lineEnd(text, found.valueEnd));
  }
  const written = tomlText(value);
  if (found !== undefined) return text.slice(0, found.valueStart) + written + text.slice(found.valueEnd);
  const table = key.slice(0, -1);
  const line = `${keyText(key.slice(-1))} = ${written}\n`;
  const section = sections.find(({ path }) => isPath(path, table));
  if (section !== undefined) {
    const before = text.slice(0, section.end);
    return `${before}${before === "" || before.endsWith("\n") ? "" : "\n"}${line}${text.slice(section.end)}`;
  }
  const gap = text === "" ? "" : text.endsWith("\n") ? "\n" : "\n\n";
  return `${text}${gap}[${keyText(table)}]\n${line}`;
}

/** Every assignment and every table header, with their positions in the text. */
function outline(text: string): { readonly assignments: readonly Assignment[]; readonly sections: readonly Section[] } {
  const assignments: Assignment[] = [];
  const top: Section = { path: [], end: 0 };
  const sections: Section[] = [top];
  let section: Section = top;
  for (let at = 0; at < text.length;) {
    const line = text.slice(at, lineEnd(text, at));
    const header = /^\s*\[([^[\]]+)\]/.exec(line);
    const assigned = keyAndValue(line);
    if (header?.[1] !== undefined) {
      section = { path: splitKey(header[1]), end: at + line.length };
      sections.push(section);
    } else if (line.trimStart().startsWith("[")) {
      // An entry of an array of tables: nothing in it can be named by a key.
      section = { path: ["\u0000"], end: at + line.length };
    } else if (assigned !== undefined) {
      const valueStart = at + assigned.valueAt;
      const end = valueEnd(text, valueStart);
      assignments.push({ path: [...section.path, ...assigned.key], lineStart: at, valueStart, valueEnd: end });
      at = lineEnd(text, end);
      section.end = at;
      continue;
    }
    at += line.length;
  }
  return { assignments, sections };
}

/** Just behind the line break, or the end of the text. */
function lineEnd(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  return at < 0 ? text.length : at + 1;
}

function isPath(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((part, index) => part === b[index]);
}

export function keyText(key: readonly string[]): string {
  return key.map((part) => (/^[\w-]+$/.test(part) ? part : JSON.stringify(part))).join(".");
}

export function tomlText(value: unknown): string {
  return stringify({ value })
    .replace(/^value = /, "")
    .trimEnd();
}
