/**
 * The schema of a tool's arguments as the services take it. MCP servers write any JSON Schema; services refuse what they do
 * not know, and with it every request that offers the tool. What can be said otherwise is; what cannot is said in words, in
 * the description of its schema, because the server judges the arguments by its own schema all the same.
 */
import { list, record, text, type Json } from "./untrusted.ts";

type Schema = Readonly<Record<string, Json>>;

export interface FittedTool {
  readonly parameters: Schema;
  /** What the schema cannot say any more; belongs to the tool's description. */
  readonly note?: string;
}

/** What one service takes, as data. */
interface Rules {
  /** Keywords it knows below the top; undefined: all. */
  readonly known?: ReadonlySet<string>;
  /** What the name of an argument must be like; undefined: anything. */
  readonly argument?: RegExp;
}

/** All of them want an object at the top, and none of these beside it. */
const NOT_AT_TOP: ReadonlySet<string> = new Set("oneOf anyOf allOf enum const not if then else".split(" "));

const GEMINI_KEYWORDS =
  "$ref $defs type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf " +
  "properties additionalProperties required nullable default propertyOrdering";

const RULES = {
  general: {},
  anthropic: { argument: /^[a-zA-Z0-9_.-]{1,64}$/ },
  gemini: { known: new Set(GEMINI_KEYWORDS.split(" ")) },
} as const satisfies Record<string, Rules>;

export type SchemaRules = keyof typeof RULES;

/** A longer note would crowd out the description. */
const MAX_NOTE_CHARS = 2000;
/** Deeper than any schema that is let in; a reference to itself ends here. */
const MAX_DEPTH = 100;

/** Schemas are judged once: a toolset is sent with every request. */
const fitted: Readonly<Record<SchemaRules, WeakMap<Schema, FittedTool>>> = {
  general: new WeakMap(),
  anthropic: new WeakMap(),
  gemini: new WeakMap(),
};

export function fitToolSchema(schema: Schema, rules: SchemaRules): FittedTool {
  const known = fitted[rules].get(schema);
  if (known !== undefined) return known;
  const made = fitTop(schema, RULES[rules]);
  fitted[rules].set(schema, made);
  return made;
}

/** Any other schema in the words a service knows. */
export function fitSchema(schema: Schema, rules: SchemaRules): Schema {
  return fitNode(schema, RULES[rules], 0);
}

function fitTop(schema: Schema, rules: Rules): FittedTool {
  const top = resolveTop(schema);
  const { merged, unsupported } = withFittingNames(mergeTop(top), rules);
  const { $schema: _, ...node } = fitNode(merged, rules, 0);
  const parameters = { ...node, type: "object", properties: record(node["properties"]) ?? {} };
  if (Object.keys(unsupported).length === 0) return { parameters };
  const json = JSON.stringify(unsupported);
  const shown = json.length <= MAX_NOTE_CHARS ? json : `${json.slice(0, MAX_NOTE_CHARS)}… (cut)`;
  return { parameters, note: `The arguments must also match this JSON Schema: ${shown}` };
}

/** A reference at the very top is replaced by what it names. */
function resolveTop(schema: Schema): Schema {
  let top = schema;
  for (let step = 0; step < MAX_DEPTH && text(top["$ref"]) !== undefined; step += 1) {
    const { $ref, ...beside } = top;
    const target = record(schemaAt(schema, text($ref) ?? ""));
    if (target === undefined) return beside;
    top = { ...target, ...beside };
  }
  const definitions = ["$defs", "definitions"].flatMap((name) =>
    schema[name] === undefined ? [] : [[name, schema[name]]],
  );
  return { ...Object.fromEntries(definitions), ...top };
}

function schemaAt(root: Schema, reference: string): Json {
  if (!reference.startsWith("#/")) return undefined;
  const names = reference.slice(2).split("/");
  return names.reduce<Json>((schema, name) => record(schema)?.[name.replaceAll("~1", "/").replaceAll("~0", "~")], root);
}

interface Merged {
  readonly merged: Schema;
  /** Keywords of the top that the merged schema does not carry. */
  readonly unsupported: Schema;
}

/**
 * One object for a choice of objects. `allOf` loses nothing. Of a choice every property is named, those that all
 * alternatives demand stay demanded, and the choice itself is left to the words.
 */
function mergeTop(top: Schema): Merged {
  const beside = Object.fromEntries(Object.entries(top).filter(([name]) => !NOT_AT_TOP.has(name)));
  const all = list(top["allOf"]).map((part) => resolveIn(top, part));
  const choices = [list(top["anyOf"]), list(top["oneOf"])].filter((choice) => choice.length > 0);
  const merged = choices
    .map((choice) => choiceOf(choice.map((part) => resolveIn(top, part))))
    .reduce(bothOf, all.reduce(bothOf, beside));
  const isLost = (name: string): boolean => name !== "allOf" || all.some(hasMoreThanFields);
  const unsupported = Object.entries(top).filter(([name]) => NOT_AT_TOP.has(name) && isLost(name));
  return { merged, unsupported: Object.fromEntries(unsupported) };
}

/** An argument by a name that the service refuses is told in words alone; a model that uses it is understood. */
function withFittingNames({ merged, unsupported }: Merged, { argument }: Rules): Merged {
  const properties = Object.entries(record(merged["properties"]) ?? {});
  const odd = properties.filter(([name]) => argument?.test(name) === false);
  if (odd.length === 0) return { merged, unsupported };
  const { additionalProperties: _, ...open } = merged;
  const isOdd = (name: Json): boolean => odd.some(([other]) => other === name);
  const required = list(merged["required"]);
  return {
    merged: {
      ...open,
      properties: Object.fromEntries(properties.filter(([name]) => !isOdd(name))),
      required: required.filter((name) => !isOdd(name)),
    },
    unsupported: { ...unsupported, properties: Object.fromEntries(odd), required: required.filter(isOdd) },
  };
}

function resolveIn(top: Schema, part: Json): Schema {
  const schema = record(part) ?? {};
  const { $ref, ...beside } = schema;
  const target = text($ref) === undefined ? undefined : record(schemaAt(top, text($ref) ?? ""));
  return target === undefined ? schema : { ...target, ...beside };
}

const FIELDS: ReadonlySet<string> = new Set("type properties required description title".split(" "));

function hasMoreThanFields(schema: Schema): boolean {
  return Object.keys(schema).some((name) => !FIELDS.has(name));
}

function bothOf(one: Schema, other: Schema): Schema {
  const required = [...new Set([...list(one["required"]), ...list(other["required"])])];
  return {
    ...one,
    properties: joinProperties([one, other], "allOf"),
    ...(required.length === 0 ? {} : { required }),
  };
}

function choiceOf(alternatives: readonly Schema[]): Schema {
  const [first, ...rest] = alternatives.map((alternative) => list(alternative["required"]));
  const required = (first ?? []).filter((name) => rest.every((names) => names.includes(name)));
  return { properties: joinProperties(alternatives, "anyOf"), required };
}

/** A property that two name differently is joined with the given word. */
function joinProperties(schemas: readonly Schema[], join: "allOf" | "anyOf"): Schema {
  const found = new Map<string, Json[]>();
  for (const [name, value] of schemas.flatMap((schema) => Object.entries(record(schema["properties"]) ?? {}))) {
    const variants = found.get(name) ?? [];
    const isNew = variants.every((variant) => JSON.stringify(variant) !== JSON.stringify(value));
    found.set(name, isNew ? [...variants, value] : variants);
  }
  return Object.fromEntries(
    [...found].map(([name, variants]) => [name, variants.length === 1 ? variants[0] : { [join]: variants }]),
  );
}

const ONE = "items additionalProperties contains propertyNames not if then else unevaluatedProperties".split(" ");
const MANY = "anyOf oneOf allOf prefixItems".split(" ");
const NAMED = "properties patternProperties $defs definitions dependentSchemas".split(" ");

/** Below the top: today's form of older drafts, `items` for every list, and what the service does not know in words. */
function fitNode(schema: Schema, rules: Rules, depth: number): Schema {
  if (depth > MAX_DEPTH) return {};
  const below = (part: Json): Json => {
    if (part === true) return {};
    const node = record(part);
    return node === undefined ? part : fitNode(node, rules, depth + 1);
  };
  const entries = Object.entries(modern(schema)).map(([name, value]): [string, Json] => {
    if (ONE.includes(name)) return [name, name === "additionalProperties" && value === true ? true : below(value)];
    if (MANY.includes(name)) return [name, list(value).map(below)];
    const fields = NAMED.includes(name) ? record(value) : undefined;
    if (fields === undefined) return [name, value];
    return [name, Object.fromEntries(Object.entries(fields).map(([field, part]) => [field, below(part)]))];
  });
  return withKnownKeywords(Object.fromEntries(entries), rules);
}

/** What older drafts wrote otherwise, in the words of 2020-12; nothing is lost. */
function modern(schema: Schema): Schema {
  const { exclusiveMinimum, exclusiveMaximum, additionalItems, ...rest } = schema;
  const node: Record<string, Json> = { ...rest };
  exclusive(node, "minimum", ["exclusiveMinimum", exclusiveMinimum]);
  exclusive(node, "maximum", ["exclusiveMaximum", exclusiveMaximum]);
  if (Array.isArray(node["items"])) {
    node["prefixItems"] = node["items"];
    node["items"] = additionalItems ?? {};
  }
  // A property that says of itself that it is needed, as the oldest draft had it.
  if (node["required"] !== undefined && !Array.isArray(node["required"])) delete node["required"];
  if (node["type"] === "any") delete node["type"];
  if ([node["type"]].flat().includes("array") && node["items"] === undefined) node["items"] = {};
  return node;
}

function exclusive(node: Record<string, Json>, limit: "minimum" | "maximum", [name, value]: [string, Json]): void {
  if (typeof value === "number") node[name] = value;
  if (value !== true || node[limit] === undefined) return;
  node[name] = node[limit];
  delete node[limit];
}

function withKnownKeywords(node: Schema, { known }: Rules): Schema {
  if (known === undefined) return node;
  const same = oneTypeEach(sameInKnownKeywords(node));
  const isKnown = ([name]: readonly [string, Json]): boolean => known.has(name);
  const unknown = Object.entries(same).filter((entry) => !isKnown(entry) && !REMARKS.has(entry[0]));
  const kept = Object.fromEntries(Object.entries(same).filter(isKnown));
  if (unknown.length === 0) return kept;
  const note = `(JSON Schema: ${JSON.stringify(Object.fromEntries(unknown)).slice(0, MAX_NOTE_CHARS)})`;
  const description = [text(node["description"]) ?? "", note].join(" ").trim();
  return { ...kept, description };
}

/** Words that demand nothing of a value. */
const REMARKS: ReadonlySet<string> = new Set(
  "$schema $id $comment $anchor examples deprecated readOnly writeOnly".split(" "),
);

/** Gemini knows one type a schema: `null` beside it is a word of its own, and a choice of types is a choice of schemas. */
function oneTypeEach(node: Schema): Schema {
  if (!Array.isArray(node["type"])) return node;
  const { type: _, items, prefixItems, properties, required, additionalProperties, ...rest } = node;
  const ofList = given({ items, prefixItems });
  const ofObject = given({ properties, required, additionalProperties });
  const types = node["type"].filter((type) => type !== "null");
  const alternatives = types.map((type) => ({
    type,
    ...(type === "array" ? ofList : {}),
    ...(type === "object" ? ofObject : {}),
  }));
  const nullable = types.length < node["type"].length ? { nullable: true } : {};
  if (alternatives.length === 1) return { ...rest, ...alternatives[0], ...nullable };
  return rest["anyOf"] === undefined ? { ...rest, anyOf: alternatives, ...nullable } : { ...rest, ...nullable };
}

function given(fields: Schema): Schema {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function sameInKnownKeywords({ const: only, definitions, $ref, ...node }: Schema): Schema {
  return {
    ...node,
    ...(only === undefined ? {} : { enum: [only] }),
    ...(definitions === undefined ? {} : { $defs: { ...record(definitions), ...record(node["$defs"]) } }),
    ...($ref === undefined ? {} : { $ref: text($ref)?.replace(/^#\/definitions\//, "#/$defs/") }),
  };
}
