/** Problems that the schema of specs finds, with what to write instead. */
import { didYouMean, nearest } from "@heddle/protocol";
import { TaskCheck, TaskSpec } from "@heddle/protocol/tasks";
import { z } from "zod";
import { authorKey, authorKeys, CHECK_KINDS, checkShape, unwrapped } from "./author-form.ts";
import { isTable, type Positions, type Table } from "./positions.ts";

/** More unknown keys of one table add nothing. */
const MAX_UNKNOWN = 20;

export function explainIssues(positions: Positions, input: Table, issues: readonly z.core.$ZodIssue[]): void {
  // A typo in a key makes two issues, the unknown key and the missing one; the first is enough.
  const slips = new Set(issues.flatMap((issue) => slipsOf(input, issue)));
  for (const issue of issues) {
    const isMissing = issue.code !== "unrecognized_keys" && valueAt(input, issue.path) === undefined;
    const [last = "", ...above] = issue.path.toReversed();
    const key = [...above.toReversed(), authorKey(String(last))].join("\n");
    if (!isMissing || !slips.has(key)) explain(positions, input, issue);
  }
}

function slipsOf(input: Table, issue: z.core.$ZodIssue): readonly string[] {
  if (issue.code !== "unrecognized_keys") return [];
  const known = knownKeys(input, issue.path);
  return issue.keys.slice(0, MAX_UNKNOWN).map((key) => [...issue.path, guessed(key, known)].join("\n"));
}

function explain(positions: Positions, input: Table, issue: z.core.$ZodIssue): void {
  const { path } = issue;
  const tell = (message: string, at: readonly PropertyKey[] = path): void => positions.problemIn(input, at, message);
  const word = positions.written(input, path) || "the task";
  switch (issue.code) {
    case "unrecognized_keys": {
      const known = knownKeys(input, path);
      for (const key of issue.keys.slice(0, MAX_UNKNOWN))
        tell(`unknown key "${key}"${meant(key, known)}`, [...path, key]);
      return;
    }
    case "invalid_type":
    case "invalid_union":
      // Only checks are a discriminated union.
      if ("discriminator" in issue) return tell(kindProblem(valueAt(input, path.slice(0, -1))));
      if (valueAt(input, path) === undefined) return tell(missing(path));
      return tell(`${word} must be ${wanted(issue)}, not ${shown(valueAt(input, path))}`);
    case "invalid_value": {
      const choices = issue.values.map(String);
      const value = valueAt(input, path);
      return tell(
        `${word} must be one of ${choices.join(", ")}${typeof value === "string" ? didYouMean(value, choices) : ""}`,
      );
    }
    case "too_small":
      return tell(`${word} ${tooSmall(issue)}`);
    case "too_big":
      return tell(`${word} must be at most ${String(issue.maximum)}`);
    case "invalid_format":
      return tell(issue.format === "url" ? `${word} must be an http or https address` : `${word} ${issue.message}`);
    default:
      return tell(`${word} ${issue.message}`);
  }
}

function meant(key: string, known: readonly string[]): string {
  const guess = guessed(key, known);
  if (guess !== undefined) return `; did you mean "${guess}"?`;
  return known.length === 0 ? "" : `; known here: ${known.join(", ")}`;
}

function guessed(key: string, known: readonly string[]): string | undefined {
  const folded = key.replaceAll("-", "_");
  return known.includes(folded) ? folded : nearest(key, known);
}

/** The keys of the table at the end of the path. */
function knownKeys(input: Table, path: readonly PropertyKey[]): readonly string[] {
  let schema: unknown = TaskSpec;
  for (const part of path) {
    const inner = unwrapped(schema);
    if (inner instanceof z.ZodObject) schema = inner.shape[String(part)];
    else if (inner instanceof z.ZodArray) schema = inner.element;
    if (unwrapped(schema) === TaskCheck) return checkKeys(input, path);
  }
  const inner = unwrapped(schema);
  return inner instanceof z.ZodObject ? authorKeys(inner.shape) : [];
}

function checkKeys(input: Table, path: readonly PropertyKey[]): readonly string[] {
  const check = valueAt(input, path);
  return isTable(check) ? authorKeys(checkShape(String(check["kind"]))) : [];
}

function kindProblem(check: unknown): string {
  if (!isTable(check)) return `a check is a command, or a table with its kind; not ${shown(check)}`;
  const { kind } = check;
  if (kind !== undefined) {
    const word = typeof kind === "string" ? kind : shown(kind);
    const hint = didYouMean(word, CHECK_KINDS) || `; there are ${CHECK_KINDS.join(", ")}`;
    return `there is no kind of check "${word}"${hint}`;
  }
  const guess = Object.keys(check)
    .map((key) => nearest(key.replaceAll("_", "-"), CHECK_KINDS))
    .find((found) => found !== undefined);
  const hint = guess === undefined ? `one of ${CHECK_KINDS.join(", ")}` : `did you mean "${guess}"?`;
  return `a check says its kind, as kind: … or as its first key; ${hint}`;
}

const EXAMPLES: Readonly<Record<string, string>> = {
  name: "name: fix the login",
  workspace: "workspace: . (the folder to work in, relative to this file)",
  goal: "goal: what is to be done",
  run: "run: npm test",
  path: "path: README.md",
  paths: 'paths: ["src/**"]',
  url: "url: http://127.0.0.1:3000/health",
  model: "model: gpt-5.5",
};

function missing(path: readonly PropertyKey[]): string {
  const last = path.at(-1);
  const name = typeof last === "string" ? last : "value";
  return `${authorKey(name)} is missing; add ${EXAMPLES[name] ?? `${authorKey(name)}: …`}`;
}

function tooSmall({ origin, minimum, inclusive }: z.core.$ZodIssueTooSmall): string {
  if (origin === "string") return "must not be empty";
  if (origin === "array") return "needs at least one entry";
  return inclusive === false ? `must be above ${String(minimum)}` : `must be at least ${String(minimum)}`;
}

const KINDS: Readonly<Record<string, string>> = {
  string: "a text (in quotes, if it looks like something else)",
  boolean: "true or false, without quotes",
  number: "a number",
  int: "a whole number",
  array: "a list",
  object: "a table of keys and values",
  record: "a table of keys and values",
};

function wanted(issue: z.core.$ZodIssueInvalidType | z.core.$ZodIssueInvalidUnion): string {
  if (issue.code === "invalid_union") return "a text or a list of texts";
  return KINDS[issue.expected] ?? issue.expected;
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a table";
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function valueAt(input: Table, path: readonly PropertyKey[]): unknown {
  let value: unknown = input;
  for (const part of path) value = childOf(value, part);
  return value;
}

function childOf(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}
