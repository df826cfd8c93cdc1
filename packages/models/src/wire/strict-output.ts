/**
 * A schema for the answer as services enforce it: every object closed, nothing in it that they do not know. Closing an object
 * that names its properties only narrows the answers, so each of them still keeps to the schema that was asked for. A schema
 * that needs more than that is not enforced by the service, and the answer is checked here as always.
 */
import { list, record, text, type Json } from "./untrusted.ts";

type Schema = Readonly<Record<string, Json>>;

interface Rules {
  readonly keywords: ReadonlySet<string>;
  /** Every property must be demanded. */
  readonly isAllRequired: boolean;
}

const COMMON =
  "type properties required additionalProperties items enum const anyOf $ref $defs definitions description title";
const LIMITS = "pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems";

const RULES = {
  openai: { keywords: new Set(`${COMMON} ${LIMITS}`.split(" ")), isAllRequired: true },
  anthropic: { keywords: new Set(`${COMMON} format`.split(" ")), isAllRequired: false },
} as const satisfies Record<string, Rules>;

const MAX_DEPTH = 100;

/** undefined: the service would refuse it. */
export function strictSchema(schema: unknown, service: keyof typeof RULES): Schema | undefined {
  const { $schema: _, $id: _id, ...top } = record(schema) ?? {};
  if (top["type"] !== "object" || top["anyOf"] !== undefined) return undefined;
  return close(top, RULES[service], 0);
}

function close(value: Json, rules: Rules, depth: number): Schema | undefined {
  const schema = record(value);
  if (schema === undefined || depth > MAX_DEPTH) return undefined;
  if (!Object.keys(schema).every((name) => rules.keywords.has(name))) return undefined;
  const below = (part: Json): Schema | undefined => close(part, rules, depth + 1);
  const closed: Record<string, Json> = { ...schema };
  for (const name of ["properties", "$defs", "definitions"]) {
    if (schema[name] === undefined) continue;
    const parts = Object.entries(record(schema[name]) ?? {}).map(([key, part]) => [key, below(part)] as const);
    if (parts.some(([, part]) => part === undefined)) return undefined;
    closed[name] = Object.fromEntries(parts);
  }
  if (schema["anyOf"] !== undefined) {
    const parts = list(schema["anyOf"]).map(below);
    if (parts.includes(undefined)) return undefined;
    closed["anyOf"] = parts;
  }
  if (schema["items"] !== undefined) {
    closed["items"] = below(schema["items"]);
    if (closed["items"] === undefined) return undefined;
  }
  return isObject(schema) ? closeObject(schema, closed, rules) : withItems(closed);
}

function isObject(schema: Schema): boolean {
  return schema["properties"] !== undefined || [schema["type"]].flat().includes("object");
}

function closeObject(schema: Schema, closed: Schema, { isAllRequired }: Rules): Schema | undefined {
  const { additionalProperties = false } = schema;
  const names = Object.keys(record(schema["properties"]) ?? {});
  const required = list(schema["required"]).map(text);
  // Without properties it is a map of anything; closed it could only be empty.
  if (additionalProperties !== false || schema["anyOf"] !== undefined) return undefined;
  if (names.length === 0 && schema["additionalProperties"] === undefined) return undefined;
  if (isAllRequired && !names.every((name) => required.includes(name))) return undefined;
  return { ...closed, additionalProperties: false };
}

/** A list of anything cannot be enforced. */
function withItems(closed: Schema): Schema | undefined {
  return [closed["type"]].flat().includes("array") && closed["items"] === undefined ? undefined : closed;
}
