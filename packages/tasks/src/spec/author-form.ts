/**
 * From author's form to TaskSpec, by mechanical rules: `snake_case` for `camelCase`, `timeout: 5m` for `timeoutMs`, one
 * text for a list of texts, and the short forms of SHORT. The long forms are accepted too, so that a stored spec can be
 * read again.
 */
import {
  ContestMeasure,
  LeafCheck,
  TaskAgent,
  TaskCheck,
  TaskHop,
  TaskRetries,
  TaskSchedule,
  TaskScore,
  TaskSetup,
  TaskSpec,
  TaskStep,
  TaskWorktree,
} from "@heddle/protocol/tasks";
import { z } from "zod";
import { parseDuration } from "./durations.ts";
import { isTable, type Positions, type Table } from "./positions.ts";

interface Spot {
  readonly positions: Positions;
  readonly container: object;
  readonly key: string | number;
}

/** The table with the keys of TaskSpec; unknown keys are left for the schema to refuse. */
export function specInput(positions: Positions, table: Table): Table {
  return tableIn(positions, TaskSpec.shape, table);
}

export function authorKeys(shape: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(shape).map(authorKey);
}

export function authorKey(key: string): string {
  return snakeCase(isDuration(key) ? key.slice(0, -2) : key);
}

export function isDuration(key: string): boolean {
  return key.endsWith("Ms");
}

function snakeCase(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** What a key takes: one text, a list of texts, checks, or another value. */
export function writtenAs(word: string): "text" | "texts" | "checks" | "value" {
  const shape: Readonly<Record<string, unknown>> = TaskSpec.shape;
  const schema = unwrapped(shape[nameIn(shape, word) ?? ""]);
  if (schema instanceof z.ZodString) return "text";
  if (!(schema instanceof z.ZodArray) || !takesText(schema.element)) return "value";
  return schema.element === TaskCheck ? "checks" : "texts";
}

export function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)
    return unwrapped(schema.unwrap());
  return schema;
}

function tableIn(positions: Positions, shape: Readonly<Record<string, unknown>>, table: Table): Table {
  const entries: (readonly [string, unknown, string])[] = [];
  const taken = new Map<string, string>();
  for (const [word, value] of Object.entries(table)) {
    const name = nameIn(shape, word);
    const before = name === undefined ? undefined : taken.get(name);
    if (name === undefined) entries.push([word, value, word]);
    else if (before !== undefined) positions.problem(table, word, `"${word}" means the same as "${before}"; keep one`);
    else {
      taken.set(name, word);
      const spot = { positions, container: table, key: word };
      const isWritten = isDuration(name) && word === authorKey(name);
      entries.push([name, isWritten ? durationAt(spot, value) : valueIn(shape[name], value, spot), word]);
    }
  }
  return positions.table(table, entries);
}

function nameIn(shape: Readonly<Record<string, unknown>>, word: string): string | undefined {
  return Object.keys(shape).find((key) => word === key || word === snakeCase(key) || word === authorKey(key));
}

function durationAt({ positions, container, key }: Spot, value: unknown): unknown {
  const ms = typeof value === "string" ? parseDuration(value) : undefined;
  if (ms !== undefined && ms > 0) return ms;
  const example = typeof value === "number" ? `"${value}s", "${value}m"` : `"90s", "5m", "1h", "1d"`;
  positions.problem(container, key, `${positions.word(container, key)} must be a duration with its unit: ${example}`);
  return 1;
}

function valueIn(schema: unknown, value: unknown, spot: Spot): unknown {
  const inner = unwrapped(schema);
  if (inner === TaskCheck) return checkAt(spot, value);
  const long = shortForm(inner, value, spot);
  if (inner instanceof z.ZodObject && isTable(long)) return tableIn(spot.positions, inner.shape, long);
  if (inner instanceof z.ZodArray) {
    const list =
      typeof long === "string" && takesText(inner.element)
        ? spot.positions.around([long], spot.container, spot.key)
        : long;
    if (!Array.isArray(list)) return long;
    const entries: readonly unknown[] = list;
    return spot.positions.list(
      list,
      entries.map((entry, key) => valueIn(inner.element, entry, { ...spot, container: list, key })),
    );
  }
  return long;
}

function takesText(element: unknown): boolean {
  return (
    element === TaskCheck ||
    element === TaskStep ||
    element === TaskHop ||
    element === ContestMeasure ||
    unwrapped(element) instanceof z.ZodString
  );
}

/** What a single text or number means where a table is expected. */
const SHORT: ReadonlyMap<unknown, (value: unknown) => Table | undefined> = new Map([
  [TaskStep, (value: unknown) => (typeof value === "string" ? { title: value } : undefined)],
  [TaskAgent, (value: unknown) => (typeof value === "string" ? { runner: value } : undefined)],
  [TaskScore, (value: unknown) => (typeof value === "string" || Array.isArray(value) ? { run: value } : undefined)],
  [TaskHop, (value: unknown) => (typeof value === "string" ? { to: value } : undefined)],
  [TaskSchedule, scheduleOf],
  [TaskRetries, (value: unknown) => (typeof value === "number" ? { max: value } : undefined)],
  [TaskSetup, (value: unknown) => (typeof value === "string" || Array.isArray(value) ? { run: value } : undefined)],
  [TaskWorktree, (value: unknown) => (value === true ? {} : undefined)],
  [
    unwrapped(TaskSpec.shape.secondOpinion),
    (value: unknown) => (typeof value === "string" ? { model: value } : undefined),
  ],
]);

function shortForm(schema: unknown, value: unknown, { positions, container, key }: Spot): unknown {
  // `worktree: false` overrides a default.
  if (schema === TaskWorktree && value === false) return undefined;
  const long = SHORT.get(schema)?.(value);
  return long === undefined ? value : positions.around(long, container, key);
}

/** `1h`: every hour; a date and time: once; anything else is cron. */
function scheduleOf(value: unknown): Table | undefined {
  if (typeof value !== "string") return undefined;
  if (parseDuration(value) !== undefined) return { every: value };
  return /^\d{4}-\d\d-\d\d/.test(value) ? { at: value } : { cron: value };
}

const COMBINED = ["all", "any", "not"] as const;
const SHAPES = new Map<string, Readonly<Record<string, unknown>>>();
for (const { shape } of LeafCheck.options) SHAPES.set(shape.kind.value, shape);
for (const kind of COMBINED) SHAPES.set(kind, { kind: true, name: true, of: true });
export const CHECK_KINDS = [...SHAPES.keys()];

export function checkShape(kind: string): Readonly<Record<string, unknown>> {
  return SHAPES.get(kind) ?? {};
}

/** The main field of a kind: `file-exists: README.md`. */
export const MAIN_FIELD: Readonly<Record<string, string>> = {
  "file-exists": "path",
  "file-absent": "path",
  "glob-count": "glob",
  changed: "paths",
  unchanged: "paths",
  command: "run",
  tests: "run",
  checkboxes: "paths",
  http: "url",
  all: "of",
  any: "of",
  not: "of",
};

function checkAt(spot: Spot, value: unknown): unknown {
  const { positions, container, key } = spot;
  if (typeof value === "string") return positions.around({ kind: "command", run: value }, container, key);
  if (!isTable(value)) return value;
  const long = "kind" in value ? value : longCheck(positions, value);
  const kind = typeof long["kind"] === "string" ? kindOf(long["kind"]) : "";
  const shape = SHAPES.get(kind);
  if (shape === undefined) return long;
  const made = tableIn(positions, shape, long);
  made["kind"] = kind;
  if ("of" in made) made["of"] = checksAt(positions, long, made["of"]);
  return made;
}

function checksAt(positions: Positions, container: object, value: unknown): unknown {
  if (!Array.isArray(value)) return checkAt({ positions, container, key: "of" }, value);
  const list: readonly unknown[] = value;
  return positions.list(
    list,
    list.map((entry, key) => checkAt({ positions, container: list, key }, entry)),
  );
}

/** `command: npm test` and the like: the key is the kind. The other keys must fit it, since some kinds are also keys. */
function longCheck(positions: Positions, table: Table): Table {
  const words = Object.keys(table);
  const candidates = words.filter((word) => SHAPES.has(kindOf(word)));
  const fits = (word: string): boolean =>
    words.every((other) => other === word || nameIn(checkShape(kindOf(word)), other) !== undefined);
  const word = candidates.find(fits) ?? candidates[0];
  if (word === undefined) return table;
  const kind = kindOf(word);
  const value = table[word];
  const main = MAIN_FIELD[kind];
  const others = words.filter((other) => other !== word).map((other) => [other, table[other], other] as const);
  const isWhole = isTable(value) && !COMBINED.some((combined) => combined === kind);
  const inside = isWhole ? Object.keys(value) : [main ?? ""];
  for (const other of inside.filter((name) => name !== word && name in table))
    positions.problem(table, other, `"${other}" and "${word}" mean the same; keep one`);
  if (!isWhole && main !== undefined)
    return positions.table(table, [["kind", kind, word], [main, value, word], ...others]);
  if (!isTable(value)) return positions.table(table, [["kind", kind, word], ...others]);
  return positions.joined(positions.table(table, [["kind", kind, word], ...others]), value);
}

function kindOf(word: string): string {
  return word.replaceAll("_", "-");
}
