/**
 * Writes packages/models/src/catalog/models-snapshot.jsonl from a copy of models.dev's data: its `api.json`, or a checkout of
 * its repository. The date is that of the data, not of today.
 * Usage: npm run models-snapshot -- PATH --date 2026-07-01 [--commit SHA]
 */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { catalogText, importCatalog, LICENCE } from "@heddle/models/catalog";
import { parse } from "smol-toml";

const TARGET = path.join(import.meta.dirname, "..", "packages", "models", "src", "catalog", "models-snapshot.jsonl");
const SOURCE = "https://github.com/anomalyco/models.dev";

export interface SnapshotOptions {
  readonly date: string;
  readonly commit?: string | undefined;
}

/** The text of a snapshot, and what was left out of it. */
export function makeSnapshot(source: string, { date, commit }: SnapshotOptions) {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) throw new Error(`--date ${date} is not a day: 2026-07-01`);
  const json = statSync(source).isDirectory() ? readTree(source) : parseJson(readFileSync(source, "utf8"));
  const { providers, leftOut, models } = importCatalog(json);
  const head = { source: SOURCE, licence: LICENCE, date, ...(commit === undefined ? {} : { commit }) };
  return { text: catalogText(head, providers), leftOut, models, providers: providers.length };
}

type Table = Record<string, unknown>;

function parseJson(text: string): unknown {
  return JSON.parse(text);
}

/** The repository keeps a file for each model; what does not depend on who serves it is in `models/`, by `base_model`. */
function readTree(root: string): Table {
  const providers: Table = {};
  for (const file of globSync("providers/*/provider.toml", { cwd: root }).sort()) {
    const folder = path.join(root, path.dirname(file), "models");
    const models: Table = {};
    for (const name of globSync("**/*.toml", { cwd: folder }).sort()) {
      // Some are links to files that are gone.
      if (!existsSync(path.join(folder, name))) continue;
      models[name.slice(0, -".toml".length).split(path.sep).join("/")] = readModel(root, path.join(folder, name));
    }
    providers[path.basename(path.dirname(file))] = { ...readToml(path.join(root, file)), models };
  }
  return providers;
}

function readModel(root: string, file: string): Table {
  const { base_model: base, base_model_omit: omitted, ...own } = readToml(file);
  if (typeof base !== "string") return own;
  const merged = mergeTables(readToml(path.join(root, "models", `${base}.toml`)), own);
  for (const dotted of Array.isArray(omitted) ? omitted : []) omit(merged, String(dotted).split("."));
  return merged;
}

function readToml(file: string): Table {
  return parse(readFileSync(file, "utf8"));
}

function mergeTables(below: Table, above: Table): Table {
  const merged: Table = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const under = merged[key];
    merged[key] = isTable(under) && isTable(value) ? mergeTables(under, value) : value;
  }
  return merged;
}

function omit(table: Table, [first, ...rest]: readonly string[]): void {
  if (first === undefined) return;
  const inner = table[first];
  if (rest.length === 0) delete table[first];
  else if (isTable(inner)) omit(inner, rest);
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { date: { type: "string" }, commit: { type: "string" } },
    allowPositionals: true,
  });
  const [source] = positionals;
  if (source === undefined || values.date === undefined) {
    throw new Error("usage: npm run models-snapshot -- PATH --date 2026-07-01 [--commit SHA]");
  }
  const { text, leftOut, models, providers } = makeSnapshot(source, { date: values.date, commit: values.commit });
  await writeFile(TARGET, text);
  for (const { provider, why } of leftOut) console.log(`left out ${provider}: ${why}`);
  console.log(
    `${providers} providers, ${models.taken} models (${models.leftOut} not understood), ${text.length} bytes`,
  );
}
