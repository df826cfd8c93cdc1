/**
 * Checks a value against a JSON Schema (2020-12 without dynamic references and `unevaluated*`): everything that strict
 * output of the providers supports, and what users write besides. A schema that cannot be checked is refused first.
 * `format` is an annotation, as in the standard.
 */
import { canonical, HeddleError } from "@heddle/protocol";

/** More adds nothing, and a model fixes them together. */
const MAX_VIOLATIONS = 20;
const MAX_SCHEMA_DEPTH = 100;
const MAX_VALUE_DEPTH = 500;

type Keywords = Readonly<Record<string, unknown>>;

export interface JsonSchema {
  violations(value: unknown, options?: Judging): readonly string[];
}

export interface Judging {
  readonly name?: string;
  /** Replaces plain matching where the patterns are not trusted. */
  readonly matches?: (pattern: RegExp, text: string) => boolean;
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => typeof value === "number" && Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: (value) => Array.isArray(value),
  object: (value) => isRecord(value),
};

const ONE_SCHEMA = "not if then else additionalProperties propertyNames items contains".split(" ");
const SCHEMA_LISTS = "anyOf oneOf allOf prefixItems".split(" ");
const SCHEMA_MAPS = "properties patternProperties $defs definitions dependentSchemas".split(" ");
const NUMBERS = "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split(" ");
const COUNTS = "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains".split(" ");
const UNSUPPORTED = "$dynamicRef $recursiveRef unevaluatedProperties unevaluatedItems".split(" ");

/** Throws `usage.invalid`, naming the location. */
export function parseJsonSchema(schema: unknown): JsonSchema {
  checkSchema(schema, { root: schema, at: "#", depth: 0 });
  return {
    violations(value, { name = "the answer", matches = matchHere } = {}) {
      const found: string[] = [];
      validate(value, schema, { root: schema, at: "", depth: 0, found, name, matches });
      return found;
    },
  };
}

function matchHere(pattern: RegExp, text: string): boolean {
  return pattern.test(text);
}

interface SchemaPath {
  readonly root: unknown;
  readonly at: string;
  readonly depth: number;
}

function checkSchema(schema: unknown, path: SchemaPath): void {
  if (typeof schema === "boolean") return;
  if (!isRecord(schema)) throw refuse(path.at, "a schema must be an object");
  if (path.depth > MAX_SCHEMA_DEPTH) throw refuse(path.at, "it is nested too deeply");
  const below = (key: string, part: unknown): void =>
    checkSchema(part, { ...path, at: `${path.at}/${key}`, depth: path.depth + 1 });
  for (const [key, value] of Object.entries(schema)) {
    if (UNSUPPORTED.includes(key)) throw refuse(path.at, `${key} is not supported`);
    if (ONE_SCHEMA.includes(key)) below(key, value);
    else if (SCHEMA_LISTS.includes(key)) {
      if (!Array.isArray(value) || value.length === 0)
        throw refuse(`${path.at}/${key}`, "it must be a list of schemas");
      for (const [index, part] of value.entries()) below(`${key}/${index}`, part);
    } else if (SCHEMA_MAPS.includes(key)) {
      if (!isRecord(value)) throw refuse(`${path.at}/${key}`, "it must be an object of schemas");
      for (const [name, part] of Object.entries(value)) below(`${key}/${name}`, part);
      if (key === "patternProperties") for (const name of Object.keys(value)) patternOf(name, path.at);
    } else checkKeyword(key, value, path);
  }
}

function checkKeyword(key: string, value: unknown, { root, at }: SchemaPath): void {
  const must = (isGood: boolean, what: string): void => {
    if (!isGood) throw refuse(`${at}/${key}`, `it must be ${what}`);
  };
  if (key === "type") {
    const names = [value].flat();
    must(
      names.length > 0 && names.every((name) => typeof name === "string" && Object.hasOwn(TYPES, name)),
      "the name of a type",
    );
  } else if (NUMBERS.includes(key)) {
    must(typeof value === "number" && (key !== "multipleOf" || value > 0), "a number");
  } else if (COUNTS.includes(key)) {
    must(typeof value === "number" && Number.isInteger(value) && value >= 0, "a whole number");
  } else if (key === "required") must(isStrings(value), "a list of names");
  else if (key === "enum") must(Array.isArray(value), "a list");
  else if (key === "uniqueItems") must(typeof value === "boolean", "true or false");
  else if (key === "dependentRequired")
    must(isRecord(value) && Object.values(value).every(isStrings), "an object of lists of names");
  else if (key === "pattern") {
    must(typeof value === "string", "a regular expression");
    patternOf(String(value), at);
  } else if (key === "$ref" && resolve(root, value) === undefined) {
    throw refuse(`${at}/$ref`, `${JSON.stringify(value)} does not resolve in this schema`);
  }
}

interface Check {
  readonly root: unknown;
  readonly at: string;
  readonly depth: number;
  readonly found: string[];
  readonly name: string;
  matches(pattern: RegExp, text: string): boolean;
}

function validate(value: unknown, schema: unknown, check: Check): void {
  if (check.found.length >= MAX_VIOLATIONS || schema === true) return;
  if (check.depth > MAX_VALUE_DEPTH) throw refuse("#", "it refers to itself without end");
  if (!isRecord(schema)) return tell(check, "nothing is allowed here");
  if (schema["$ref"] !== undefined) validate(value, resolve(check.root, schema["$ref"]), deeper(check));
  if (!typeFits(value, schema))
    return tell(check, `it must be ${[schema["type"]].flat().join(" or ")}, not ${typeName(value)}`);
  if (Array.isArray(schema["enum"]) && !schema["enum"].some((one) => same(one, value)))
    tell(check, `it must be one of ${shown(schema["enum"])}`);
  if ("const" in schema && !same(schema["const"], value)) tell(check, `it must be ${shown(schema["const"])}`);
  if (typeof value === "string") validateText(value, schema, check);
  if (typeof value === "number") keepBounds(value, "number", schema, check);
  if (Array.isArray(value)) validateList(value, schema, check);
  if (isRecord(value)) validateObject(value, schema, check);
  validateCombined(value, schema, check);
}

function typeFits(value: unknown, { type }: Keywords): boolean {
  if (type === undefined) return true;
  return [type].flat().some((name) => typeof name === "string" && TYPES[name]?.(value) === true);
}

type Bound = readonly [
  keyword: string,
  isKept: (size: number, bound: number) => boolean,
  text: (bound: number) => string,
];

const ofSize = (least: string, most: string, unit: string): readonly Bound[] => [
  [least, (size, bound) => size >= bound, (bound) => `it must have at least ${bound} ${unit}`],
  [most, (size, bound) => size <= bound, (bound) => `it must have at most ${bound} ${unit}`],
];
const BOUNDS = {
  characters: ofSize("minLength", "maxLength", "characters"),
  entries: ofSize("minItems", "maxItems", "entries"),
  fields: ofSize("minProperties", "maxProperties", "fields"),
  number: [
    ["minimum", (value, bound) => value >= bound, (bound) => `it must be at least ${bound}`],
    ["maximum", (value, bound) => value <= bound, (bound) => `it must be at most ${bound}`],
    ["exclusiveMinimum", (value, bound) => value > bound, (bound) => `it must be more than ${bound}`],
    ["exclusiveMaximum", (value, bound) => value < bound, (bound) => `it must be less than ${bound}`],
    ["multipleOf", isMultiple, (bound) => `it must be a multiple of ${bound}`],
  ],
} as const satisfies Readonly<Record<string, readonly Bound[]>>;

/** 0.3 is a multiple of 0.1, despite binary fractions. */
function isMultiple(value: number, of: number): boolean {
  const times = value / of;
  return Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times));
}

function keepBounds(size: number, kind: keyof typeof BOUNDS, schema: Keywords, check: Check): void {
  for (const [keyword, isKept, text] of BOUNDS[kind]) {
    const bound = schema[keyword];
    if (typeof bound === "number" && !isKept(size, bound)) tell(check, text(bound));
  }
}

function validateText(value: string, schema: Keywords, check: Check): void {
  const { pattern } = schema;
  keepBounds(Array.from(value).length, "characters", schema, check);
  if (typeof pattern === "string" && !check.matches(patternOf(pattern, "#"), value))
    tell(check, `it must match ${pattern}`);
}

function validateList(value: readonly unknown[], schema: Keywords, check: Check): void {
  const { uniqueItems, prefixItems, items, contains } = schema;
  keepBounds(value.length, "entries", schema, check);
  if (uniqueItems === true && new Set(value.map(canonical)).size < value.length) tell(check, "its entries must differ");
  const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : [];
  for (const [index, entry] of value.entries()) {
    const part = index < first.length ? first[index] : items;
    if (part !== undefined) validate(entry, part, below(check, index));
  }
  if (contains === undefined) return;
  const { minContains = 1, maxContains = Infinity } = schema;
  const count = value.filter((entry) => fits(entry, contains, check)).length;
  if (count < Number(minContains) || count > Number(maxContains))
    tell(check, "it must contain the right number of matching entries");
}

function validateObject(value: Keywords, schema: Keywords, check: Check): void {
  const names = Object.keys(value);
  const { propertyNames, additionalProperties } = schema;
  keepBounds(names.length, "fields", schema, check);
  for (const name of strings(schema["required"]))
    if (!Object.hasOwn(value, name)) tell(check, `${JSON.stringify(name)} is missing`);
  for (const [name, needed] of fields(schema["dependentRequired"])) {
    if (!Object.hasOwn(value, name)) continue;
    for (const other of strings(needed))
      if (!Object.hasOwn(value, other))
        tell(check, `${JSON.stringify(other)} is missing beside ${JSON.stringify(name)}`);
  }
  for (const [name, part] of fields(schema["dependentSchemas"]))
    if (Object.hasOwn(value, name)) validate(value, part, deeper(check));
  const properties = new Map(fields(schema["properties"]));
  const patterns = fields(schema["patternProperties"]).map(([source, part]) => [patternOf(source, "#"), part] as const);
  for (const name of names) {
    const child = below(check, name);
    if (propertyNames !== undefined && !fits(name, propertyNames, check)) tell(child, "this name is not allowed");
    const parts = patterns.filter(([pattern]) => check.matches(pattern, name)).map(([, part]) => part);
    if (properties.has(name)) parts.push(properties.get(name));
    for (const part of parts) validate(value[name], part, child);
    if (parts.length > 0 || additionalProperties === undefined) continue;
    if (additionalProperties === false) tell(child, "there must be no such field");
    else validate(value[name], additionalProperties, child);
  }
}

function validateCombined(value: unknown, schema: Keywords, check: Check): void {
  const { allOf, anyOf, oneOf, not } = schema;
  if (Array.isArray(allOf)) for (const part of allOf) validate(value, part, deeper(check));
  if (Array.isArray(anyOf)) explain(value, anyOf, check);
  if (Array.isArray(oneOf)) {
    const count = oneOf.filter((part) => fits(value, part, check)).length;
    if (count === 0) explain(value, oneOf, check);
    if (count > 1) tell(check, `it must fit exactly one of ${oneOf.length} shapes, not ${count}`);
  }
  if (not !== undefined && fits(value, not, check)) tell(check, "it has a shape that is not allowed");
  if (schema["if"] === undefined) return;
  const branch = fits(value, schema["if"], check) ? schema["then"] : schema["else"];
  if (branch !== undefined) validate(value, branch, deeper(check));
}

/** Reports what keeps the value from the nearest alternative. */
function explain(value: unknown, alternatives: readonly unknown[], check: Check): void {
  let nearest: readonly string[] | undefined;
  for (const part of alternatives) {
    const found: string[] = [];
    validate(value, part, { ...deeper(check), found });
    if (found.length === 0) return;
    if (nearest === undefined || found.length < nearest.length) nearest = found;
  }
  tell(check, `it matches none of ${alternatives.length} shapes; nearest: ${nearest?.join("; ") ?? ""}`);
}

function fits(value: unknown, schema: unknown, check: Check): boolean {
  const found: string[] = [];
  validate(value, schema, { ...deeper(check), found });
  return found.length === 0;
}

function deeper(check: Check): Check {
  return { ...check, depth: check.depth + 1 };
}

function below(check: Check, key: string | number): Check {
  return { ...deeper(check), at: `${check.at}/${key}` };
}

function tell({ found, at, name }: Check, message: string): void {
  if (found.length < MAX_VIOLATIONS) found.push(`${at === "" ? name : at}: ${message}`);
}

function resolve(root: unknown, reference: unknown): unknown {
  if (typeof reference !== "string" || !/^#(\/|$)/.test(reference)) return undefined;
  let part = root;
  for (const key of reference.slice(2).split("/")) {
    if (key === "") continue;
    const name = decodePointer(key);
    if (Array.isArray(part)) part = part[Number(name)];
    else part = isRecord(part) && Object.hasOwn(part, name) ? part[name] : undefined;
  }
  return typeof part === "boolean" || isRecord(part) ? part : undefined;
}

function decodePointer(key: string): string {
  const plain = key.replaceAll("~1", "/").replaceAll("~0", "~");
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

function patternOf(source: string, at: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch {
    try {
      // Older schemas escape what the strict grammar does not allow.
      return new RegExp(source);
    } catch (cause) {
      throw new HeddleError(
        "usage.invalid",
        `the schema is not valid at ${at}: ${JSON.stringify(source)} is not a regular expression`,
        { cause },
      );
    }
  }
}

function refuse(at: string, reason: string): HeddleError {
  return new HeddleError("usage.invalid", `the schema is not valid at ${at}: ${reason}`, { details: { at } });
}

function same(a: unknown, b: unknown): boolean {
  return a === b || canonical(a) === canonical(b);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "").slice(0, 300);
}

function typeName(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
}

function fields(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : [];
}

function strings(value: unknown): readonly string[] {
  return isStrings(value) ? value : [];
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string");
}

function isRecord(value: unknown): value is Keywords {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
