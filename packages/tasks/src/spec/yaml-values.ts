/**
 * YAML as plain values with positions. Anchors, aliases, tags and deep nesting are refused: no spec needs them. Duplicate
 * keys are detected here, because the parser takes quadratic time.
 */
import { isAlias, isMap, isScalar, isSeq, Lexer, parseAllDocuments, type ParsedNode, type YAMLError } from "yaml";
import type { Positions, Table } from "./positions.ts";

const MAX_DEPTH = 24;
const MAX_DOCUMENTS = 1000;
/** The parser takes seconds to refuse such depths. */
const DEEP = /(?:[[{]\s*){64}|(?:[-?][ \t]+){64}/;
const PLAIN_TAGS: ReadonlySet<string> = new Set(["str", "int", "float", "bool", "null", "map", "seq"]);

export interface YamlText {
  readonly text: string;
  readonly base: number;
}

/** One value for each document that is not empty; problems are recorded. */
export function yamlDocuments(positions: Positions, { text, base }: YamlText): readonly unknown[] {
  const deep = DEEP.exec(text);
  if (deep !== null) {
    positions.problemAt(base + deep.index, "", `this is nested more than ${MAX_DEPTH} deep`);
    return [];
  }
  const long = tooManyTokens(text, positions.maxTokens);
  if (long !== undefined) {
    positions.problemAt(
      base + long,
      "",
      `there are over ${positions.maxTokens} words and marks of YAML up to here; a task is a page or two`,
    );
    return [];
  }
  const parsed = parseAllDocuments(text, { uniqueKeys: false, prettyErrors: false, merge: false, version: "1.2" });
  const documents = Array.isArray(parsed) ? parsed : [];
  if (documents.length > MAX_DOCUMENTS) {
    positions.problemAt(
      base,
      "",
      `there are ${documents.length} documents; write at most ${MAX_DOCUMENTS} into one file`,
    );
    return [];
  }
  const values: unknown[] = [];
  for (const { errors, contents } of documents) {
    for (const error of errors) positions.problemAt(base + error.pos[0], "", yamlProblem(error));
    if (errors.length > 0 || contents === null || isEmpty(contents)) continue;
    values.push(valueOf(contents, { positions, base }));
  }
  return values;
}

/** Where the text has more than so many: splitting it is cheap, and what comes after takes a hundred times as long. */
function tooManyTokens(text: string, most: number): number | undefined {
  let [count, at] = [0, 0];
  for (const token of new Lexer().lex(text)) {
    count += 1;
    if (count > most) return at;
    at += token.length;
  }
  return undefined;
}

export function yamlProblem({ code }: YAMLError): string {
  const known: Readonly<Record<string, string>> = {
    TAB_AS_INDENT: "lines are indented with spaces, not with tabs",
    BAD_INDENT: "this line is not indented like the ones it belongs to",
    MULTILINE_IMPLICIT_KEY: "a key and its colon stand on one line; put the text in quotes, or begin it with |",
    BLOCK_AS_IMPLICIT_KEY: 'a ": " in the middle of text begins a table; put the text in quotes',
    DUPLICATE_KEY: "this key is there already",
    MISSING_CHAR: "a quote, bracket, comma or colon is missing here",
    UNEXPECTED_TOKEN: "this does not belong here; put text with special characters in quotes",
    RESOURCE_EXHAUSTION: "lists and tables are nested too deep",
  };
  return known[code] ?? "this is not YAML";
}

interface Walk {
  readonly positions: Positions;
  readonly base: number;
  readonly depth?: number;
}

function isEmpty(node: ParsedNode): boolean {
  return isScalar(node) && node.value === null && (node.source ?? "") === "";
}

function valueOf(node: ParsedNode | null, walk: Walk): unknown {
  if (node === null) return null;
  const { positions, base, depth = 0 } = walk;
  const at = base + node.range[0];
  if (isAlias(node)) return refuse(positions, at, "aliases (*name) are not read; write the value out");
  if (node.anchor !== undefined)
    return refuse(positions, at, "anchors (&name) are not read; write the value out each time");
  if (node.tag !== undefined && !PLAIN_TAGS.has(node.tag.replace("tag:yaml.org,2002:", "")))
    return refuse(positions, at, `the tag ${node.tag} is not read; leave it out`);
  if (depth > MAX_DEPTH) return refuse(positions, at, `this is nested more than ${MAX_DEPTH} deep`);
  const inner = { ...walk, depth: depth + 1 };
  if (isSeq<ParsedNode>(node)) {
    const keys = new Map(node.items.map((item, index) => [index, { at: base + item.range[0], word: `[${index}]` }]));
    const list = node.items.map((item) => valueOf(item, inner));
    positions.set(list, at, keys);
    return list;
  }
  if (isMap<ParsedNode, ParsedNode | null>(node)) return tableOf(node.items, at, inner);
  return isScalar(node) ? node.value : null;
}

function tableOf(
  pairs: readonly { readonly key: ParsedNode; readonly value: ParsedNode | null }[],
  at: number,
  walk: Walk,
): Table {
  const { positions, base } = walk;
  const table: Table = {};
  const keys = new Map<string, { readonly at: number; readonly word: string }>();
  for (const { key, value } of pairs) {
    const keyAt = base + key.range[0];
    const word = isScalar(key) && key.anchor === undefined ? wordOf(key.value) : undefined;
    if (word === undefined) {
      positions.problemAt(keyAt, "", "a key is one plain word");
      continue;
    }
    if (keys.has(word)) positions.problemAt(keyAt, word, `"${word}" is given twice; keep one of them`);
    else if (word === "__proto__") positions.problemAt(keyAt, word, `unknown key "${word}"`);
    else {
      table[word] = valueOf(value, walk);
      keys.set(word, { at: keyAt, word });
    }
  }
  positions.set(table, at, keys);
  return table;
}

function wordOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

function refuse(positions: Positions, at: number, message: string): undefined {
  positions.problemAt(at, "", message);
  return undefined;
}
