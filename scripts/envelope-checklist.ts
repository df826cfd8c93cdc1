/**
 * Every item of the envelope checklist, and every code that a verification can report, has a test that is named after it: the
 * page lists both with the files of their tests, and each file holds a name that begins with the item. No item can be dropped.
 * Usage: node scripts/envelope-checklist.ts [root]
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Visitor } from "oxc-parser";
import { runCheck, type CheckResult, type Finding } from "./finding.ts";
import { isTestFile, parseSource } from "./source-files.ts";

export const CHECKLIST = "docs/inside/envelope-checklist.md";
export const CODE_LIST = "packages/journal/src/replay/findings.ts";

/** How many items each letter has. */
const ITEMS: Readonly<Record<string, number>> = { E: 8, D: 14, S: 9, H: 15, V: 19, W: 10, R: 6 };
const VERIFY = "Verify";

export function checkEnvelopeChecklist(root: string): CheckResult {
  const codes = codesIn(root);
  if (codes.length === 0 || !existsSync(join(root, CHECKLIST))) return { examined: 0, findings: [] };
  const rows = rowsIn(readFileSync(join(root, CHECKLIST), "utf8"));
  const named = new Map<string, ReadonlySet<string>>();
  const namesIn = (path: string): ReadonlySet<string> => {
    const known = named.get(path) ?? itemsNamedIn(root, path, new Set(codes));
    named.set(path, known);
    return known;
  };
  const items = Object.entries(ITEMS).flatMap(([letter, count]) =>
    Array.from({ length: count }, (_, index) => `${letter}${index + 1}`),
  );
  const findings: Finding[] = [];
  for (const wanted of [...items, ...codes]) {
    const own = rows.filter(({ item }) => item === wanted);
    if (own.length !== 1) findings.push({ at: CHECKLIST, text: `${wanted} has ${own.length} rows instead of one` });
  }
  for (const { item, paths, line } of rows) {
    const at = `${CHECKLIST}:${line}`;
    if (!items.includes(item) && !codes.includes(item)) findings.push({ at, text: `${item} is no item` });
    else if (paths.length === 0) findings.push({ at, text: `${item} names no test` });
    for (const path of paths) {
      const problem = !isTestFile(path) || !existsSync(join(root, path)) ? "which is no test file" : undefined;
      const text = problem ?? (namesIn(path).has(item) ? undefined : `where no name of a test begins with ${item}`);
      if (text !== undefined) findings.push({ at, text: `${item} names ${path}, ${text}` });
    }
  }
  return { examined: rows.length, findings };
}

interface Row {
  readonly item: string;
  readonly paths: readonly string[];
  readonly line: number;
}

/** The first cell is the item or code, the last one its files. */
function rowsIn(text: string): Row[] {
  return text.split("\n").flatMap((content, index) => {
    const [, item = "", rest = ""] = /^\| *`?([A-Za-z0-9_]+)`? *\|(.*)\|\s*$/.exec(content) ?? [];
    if (item === "" || /^(Item|Code)$/.test(item)) return [];
    const paths = [...(rest.split("|").at(-1) ?? "").matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path);
    return [{ item, paths, line: index + 1 }];
  });
}

function codesIn(root: string): string[] {
  const path = join(root, CODE_LIST);
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const list = /CODES = \{(.*?)\n\}/s.exec(text)?.[1] ?? "";
  return [...list.matchAll(/^ {2}([a-z_]+): \{/gm)].map(([, code = ""]) => code);
}

/** Comments are no names: only texts of the program count. */
function itemsNamedIn(root: string, path: string, codes: ReadonlySet<string>): ReadonlySet<string> {
  const found = new Set<string>();
  const take = (text: string): void => {
    for (const item of itemsOf(text, codes)) found.add(item);
  };
  new Visitor({
    Literal: ({ value }) => void (typeof value === "string" && take(value)),
    TemplateLiteral: ({ quasis }) => take(quasis[0]?.value.cooked ?? ""),
  }).visit(parseSource(root, path).program);
  return found;
}

/** `D2, D3: it holds` and `V10: Verify: body_purged: it holds`: the parts before the sentence. */
export function itemsOf(name: string, codes: ReadonlySet<string>): string[] {
  const found: string[] = [];
  let isVerify = false;
  for (const part of name.split(/: |:$/)) {
    const each = part.split(/, ?| /);
    const areItems = each.every((one) => /^[A-Z]\d{1,2}$/.test(one));
    const areCodes = isVerify && each.every((one) => codes.has(one));
    if (part !== VERIFY && !areItems && !areCodes) break;
    isVerify ||= part === VERIFY;
    found.push(...each);
  }
  return found;
}

if (import.meta.main) runCheck(checkEnvelopeChecklist);
