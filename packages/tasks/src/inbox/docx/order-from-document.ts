/**
 * An order in a document: its table as YAML. Row n of the table is line n, so that problems are reported with their row.
 * The key decides how a cell is read: as text, as a list with an entry per line, or as YAML.
 */
import { TaskSpec } from "@heddle/protocol/tasks";
import { authorKeys, writtenAs } from "../../spec/author-form.ts";
import { OPENLOOM_KEYS, ownKey } from "../../spec/openloom.ts";
import { Positions, SpecError } from "../../spec/positions.ts";
import { MAX_SPEC_BYTES } from "../../spec/read-spec.ts";
import { yamlDocuments } from "../../spec/yaml-values.ts";
import { readDocumentTable, type DocumentRow } from "./document-table.ts";

const KNOWN_KEYS = [...authorKeys(TaskSpec.shape), ...OPENLOOM_KEYS];
const MAX_KEY_CHARS = 100;

export function orderFromDocument(file: string, archive: Buffer): string {
  const rows = readDocumentTable(archive).filter((row) => !isHeading(row));
  const chars = rows.reduce((sum, { text }) => sum + text.length, 0);
  if (chars > MAX_SPEC_BYTES)
    throw wrong(file, 1, `it is over ${MAX_SPEC_BYTES / 1024 / 1024} MiB; a task is a page or two`);
  const lines: string[] = [];
  for (const row of rows) {
    const { number, key, text } = row;
    // An empty cell says nothing, as in a form.
    if (text === "") continue;
    if (key === "") throw wrong(file, number, "there is a value without a key; write the key into the first column");
    if (key.length > MAX_KEY_CHARS)
      throw wrong(file, number, "a key is one word, such as goal; values are on the right");
    const word = wordOf(key);
    lines[number - 1] = `${JSON.stringify(word)}: ${JSON.stringify(valueOf(file, { ...row, key: word }))}`;
  }
  return Array.from(lines, (line) => line ?? "").join("\n");
}

function isHeading({ key, text }: DocumentRow): boolean {
  return /^(?:key|field)$/i.test(key) && /^value$/i.test(text);
}

/** `Session ID` and `Depends on:` are known keys, as a word processor writes them. */
function wordOf(key: string): string {
  const bare = key.replace(/:$/, "").trim();
  return KNOWN_KEYS.find((known) => folded(known) === folded(bare)) ?? bare;
}

function folded(word: string): string {
  return word.toLowerCase().replaceAll(/[\s_-]/g, "");
}

function valueOf(file: string, row: DocumentRow): unknown {
  const { key, text } = row;
  // An unknown key is reported by name, whatever its value is.
  if (!KNOWN_KEYS.includes(key)) return text;
  // A checkbox is not a list.
  const isListed = /^(?:-\s|\[(?![ xX]\]))/.test(text);
  const lines = text
    .split("\n")
    .map((line) => line.trim().replace(/^\[[ xX]\]\s+/, ""))
    .filter((line) => line !== "");
  switch (writtenAs(ownKey(key))) {
    case "text":
      return text;
    case "texts":
      return isListed ? yamlValue(file, row, text) : lines;
    case "checks":
      return yamlValue(file, row, isListed ? text : lines.map((line) => `- ${line}`).join("\n"));
    case "value":
      // Aliases are not read, but cron may begin with `*`.
      return text.startsWith("*") ? text : yamlValue(file, row, text);
  }
}

/** Word replaces quotes and spaces while the user types; in YAML they are syntax. */
function yamlValue(file: string, { number, key }: DocumentRow, cell: string): unknown {
  const text = cell.replaceAll(/[“”„]/g, '"').replaceAll(/[‘’‚]/g, "'").replaceAll("\u00a0", " ");
  const positions = new Positions(`${file} (row ${number}, ${key})`, text);
  const [value, second] = yamlDocuments(positions, { text, base: 0 });
  if (second !== undefined) positions.problemAt(0, key, "this is more than one value; leave out the line of ---");
  if (positions.problems.length > 0) throw new SpecError(positions.problems);
  return value ?? null;
}

function wrong(file: string, line: number, message: string): SpecError {
  return new SpecError([{ file, line, column: 1, key: "", message }]);
}
