/**
 * The tools of a server, which is not trusted: each entry is checked on its own, so that one bad tool does not cost the
 * others, and everything that is shown is bounded and escaped. The schema of the arguments stays as it came.
 */
import { createHash } from "node:crypto";
import { canonical, PLAIN, reasonOf, visibleLine, visibleText } from "@heddle/protocol";
import { z } from "zod";
import { fitText } from "../calls/fit-text.ts";
import { isWithinDepth } from "./depth.ts";

/** Ten screens of prose about one tool; more is an attack on the context. */
const MAX_DESCRIPTION_BYTES = 4096;
const MAX_NAME_CHARS = 128;
/** The largest schemas in use have some 20 kB. */
const MAX_SCHEMA_BYTES = 64 * 1024;
const MAX_SCHEMA_DEPTH = 64;

export interface ToolDefinition {
  /** As the server knows it. */
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The server calls it read-only; a claim, not a fact. */
  readonly isReadOnly: boolean;
  /** Of everything the server says about it. */
  readonly hash: string;
}

export interface ReadDefinitions {
  readonly tools: readonly ToolDefinition[];
  /** Why entries were left out; one line each, safe to show. */
  readonly leftOut: readonly string[];
}

const Entry = z.looseObject({
  name: z.string().min(1),
  description: z.string().optional(),
  inputSchema: z.record(z.string(), z.unknown()),
  annotations: z.looseObject({ readOnlyHint: z.boolean().optional() }).optional(),
});

export function readDefinitions(entries: readonly unknown[]): ReadDefinitions {
  const tools = new Map<string, ToolDefinition>();
  const leftOut: string[] = [];
  for (const entry of entries) {
    const read = readDefinition(entry);
    if (typeof read === "string") leftOut.push(read);
    else if (tools.has(read.name)) leftOut.push(`${shown(read.name)}: the server lists it twice`);
    else tools.set(read.name, read);
  }
  return { tools: [...tools.values()], leftOut };
}

/** The tool, or why it cannot be one. */
function readDefinition(entry: unknown): ToolDefinition | string {
  const parsed = Entry.safeParse(entry, PLAIN);
  if (!parsed.success) return `${nameOf(entry)}: ${visibleLine(reasonOf(parsed.error))}`;
  const { name, description = "", inputSchema, annotations } = parsed.data;
  if (name.length > MAX_NAME_CHARS) return `${shown(name)}: a name of ${name.length} characters`;
  if (!isWithinDepth(entry, MAX_SCHEMA_DEPTH)) return `${shown(name)}: nested deeper than ${MAX_SCHEMA_DEPTH} levels`;
  const bytes = Buffer.byteLength(JSON.stringify(inputSchema));
  if (bytes > MAX_SCHEMA_BYTES) return `${shown(name)}: a schema of ${bytes} bytes`;
  if (inputSchema["type"] !== undefined && inputSchema["type"] !== "object") {
    return `${shown(name)}: its arguments are not an object`;
  }
  return {
    name,
    description: fitText(visibleText(description), MAX_DESCRIPTION_BYTES),
    parameters: inputSchema["type"] === undefined ? { type: "object", ...inputSchema } : inputSchema,
    isReadOnly: annotations?.readOnlyHint === true,
    hash: createHash("sha256").update(canonical(entry)).digest("hex"),
  };
}

function nameOf(entry: unknown): string {
  const name: unknown = typeof entry === "object" && entry !== null ? Reflect.get(entry, "name") : undefined;
  return typeof name === "string" ? shown(name) : "an entry without a name";
}

/** A name as a person may see it. */
export function shown(name: string): string {
  return JSON.stringify(visibleLine(name.slice(0, 80)));
}
