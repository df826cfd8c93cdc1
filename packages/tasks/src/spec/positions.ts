/**
 * Where in a file each part of a value was written. Derived values keep these positions, so that problems are reported with
 * the line and the key that the author wrote.
 */
import { HeddleError } from "@heddle/protocol";

export type Table = Record<string, unknown>;

export interface Problem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** As written, with the keys above it: `checks[0].kind`. */
  readonly key: string;
  readonly message: string;
}

export class SpecError extends HeddleError {
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const [first] = problems;
    const message = problems.map(problemLine).join("\n") || "there is no task";
    const { file = "", line = 0, column = 0, key = "" } = first ?? {};
    super("task.invalid", message, { details: { file, line, column, key, problems: problems.length } });
    this.problems = problems;
  }
}

export function problemLine({ file, line, column, message }: Problem): string {
  return `${file}:${line}:${column}: ${message}`;
}

interface Spot {
  readonly at: number;
  readonly word: string;
}

interface Container {
  readonly at: number;
  readonly keys: ReadonlyMap<string | number, Spot>;
}

/** More than anybody reads; the rest is found when these are fixed. */
const MAX_PROBLEMS = 50;

/** Of a file of many tasks: a thousand of a hundred each. */
const MAX_TOKENS = 100_000;

export class Positions {
  readonly file: string;
  /** Words and marks of YAML that are read; more are refused, because everybody else waits meanwhile. */
  readonly maxTokens: number;
  readonly problems: Problem[] = [];
  readonly warnings: string[] = [];
  readonly #text: string;
  readonly #of = new WeakMap<object, Container>();

  constructor(file: string, text: string, maxTokens = MAX_TOKENS) {
    this.file = file;
    this.maxTokens = maxTokens;
    this.#text = text;
  }

  set(container: object, at: number, keys: ReadonlyMap<string | number, Spot>): void {
    this.#of.set(container, { at, keys });
  }

  /** A table made from another one: each new key with the old key it came from. */
  table(from: object, entries: readonly (readonly [key: string, value: unknown, from: string | number])[]): Table {
    const made: Table = {};
    const known = this.#of.get(from);
    const keys = new Map<string | number, Spot>();
    for (const [key, value, old] of entries) {
      made[key] = value;
      const spot = known?.keys.get(old);
      if (spot !== undefined) keys.set(key, spot);
    }
    this.#of.set(made, { at: known?.at ?? 0, keys });
    return made;
  }

  /** A table with more keys, each with its own position. Existing keys stay. */
  extended(from: Table, more: Table, spots: ReadonlyMap<string | number, Spot>): Table {
    const known = this.#of.get(from);
    const made = { ...more, ...from };
    this.#of.set(made, { at: known?.at ?? 0, keys: new Map([...spots, ...(known?.keys ?? [])]) });
    return made;
  }

  /** Two tables as one; the first wins. */
  joined(first: Table, second: Table): Table {
    return this.extended(first, second, this.#of.get(second)?.keys ?? new Map());
  }

  /** A list made from another one, entry by entry. */
  list(from: readonly unknown[], values: readonly unknown[]): unknown[] {
    const made = [...values];
    const known = this.#of.get(from);
    if (known !== undefined) this.#of.set(made, known);
    return made;
  }

  /** A container for a value at one position. */
  around<T extends object>(made: T, from: object, key: string | number): T {
    const spot = this.#of.get(from)?.keys.get(key);
    const at = spot?.at ?? this.#of.get(from)?.at ?? 0;
    this.#of.set(made, { at, keys: new Map(Object.keys(made).map((name) => [keyOf(made, name), { at, word: name }])) });
    return made;
  }

  problem(container: object, key: string | number | undefined, message: string): void {
    this.problemAt(this.#offset(container, key), key === undefined ? "" : this.word(container, key), message);
  }

  problemAt(offset: number, key: string, message: string): void {
    if (this.problems.length < MAX_PROBLEMS)
      this.problems.push({ file: this.file, ...this.#line(offset), key, message });
  }

  warn(container: object, key: string | number | undefined, message: string): void {
    const { line, column } = this.#line(this.#offset(container, key));
    this.warnings.push(problemLine({ file: this.file, line, column, key: "", message }));
  }

  /** A problem at a path in a value, reported at the nearest known position. */
  problemIn(root: object, path: readonly PropertyKey[], message: string): void {
    const { at, key } = this.#walk(root, path);
    this.problemAt(at, key, message);
  }

  warnIn(root: object, path: readonly PropertyKey[], message: string): void {
    const { line, column } = this.#line(this.#walk(root, path).at);
    this.warnings.push(problemLine({ file: this.file, line, column, key: "", message }));
  }

  word(container: object, key: string | number): string {
    return this.#of.get(container)?.keys.get(key)?.word ?? String(key);
  }

  /** The path with the keys as written. */
  written(root: object, path: readonly PropertyKey[]): string {
    return this.#walk(root, path).key;
  }

  #offset(container: object, key: string | number | undefined): number {
    const known = this.#of.get(container);
    return (key === undefined ? undefined : known?.keys.get(key)?.at) ?? known?.at ?? 0;
  }

  #walk(root: object, path: readonly PropertyKey[]): { readonly at: number; readonly key: string } {
    let at = this.#of.get(root)?.at ?? 0;
    let key = "";
    let here: unknown = root;
    for (const part of path) {
      if (typeof here !== "object" || here === null || typeof part === "symbol") break;
      const spot = this.#of.get(here)?.keys.get(part);
      if (spot !== undefined) at = spot.at;
      const word = typeof part === "number" ? `[${part}]` : (spot?.word ?? part);
      key += key === "" || typeof part === "number" ? word : `.${word}`;
      here = Object.hasOwn(here, part) ? Reflect.get(here, part) : undefined;
    }
    return { at, key };
  }

  #line(offset: number): { readonly line: number; readonly column: number } {
    const before = this.#text.slice(0, offset);
    return { line: before.split("\n").length, column: offset - before.lastIndexOf("\n") };
  }
}

function keyOf(container: object, name: string): string | number {
  return Array.isArray(container) ? Number(name) : name;
}

export function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
