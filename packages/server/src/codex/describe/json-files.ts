/** One JSON Schema a type, each whole by itself, and one bundle of all. */
import { definitions, refsOf, ROOTS, type DescribeOptions, type Json } from "./definitions.ts";

const DRAFT = "https://json-schema.org/draft/2020-12/schema";
export const BUNDLE = "codex_app_server_protocol.schemas.json";

/** Path → content. */
export function jsonFiles(options: DescribeOptions): ReadonlyMap<string, string> {
  const all = definitions(options);
  const files = new Map<string, string>();
  for (const [name, schema] of all) {
    const known = { $schema: DRAFT, title: name, ...schema };
    const used = reached(name, all);
    files.set(
      pathOf(name, "json"),
      text(used.size === 0 ? known : { ...known, definitions: Object.fromEntries(used) }),
    );
  }
  files.set(BUNDLE, text(bundle(options)));
  return files;
}

export function bundle(options: DescribeOptions): Json {
  return { $schema: DRAFT, title: "CodexAppServerProtocol", definitions: Object.fromEntries(definitions(options)) };
}

export function pathOf(name: string, ending: "json" | "ts"): string {
  const isRoot = (ROOTS as readonly string[]).includes(name) || name.startsWith("Initialize");
  return isRoot ? `${name}.${ending}` : `v2/${name}.${ending}`;
}

function reached(name: string, all: ReadonlyMap<string, Json>): ReadonlyMap<string, Json> {
  const found = new Map<string, Json>();
  const left = [...refsOf(all.get(name))];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const schema = all.get(next);
    if (schema === undefined || found.has(next)) continue;
    found.set(next, schema);
    left.push(...refsOf(schema));
  }
  return new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function text(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
