/**
 * A task as a Markdown page: front matter for the keys, the page for the text.
 *
 *   # Title                     the name, when it is the first line and the front matter has none
 *   any text                    the goal
 *   ## Goal                     the goal
 *   ## Steps                    a list; what is listed under an entry is its acceptance
 *   ## Acceptance               a list
 *   ## Checks                   the YAML of `checks:`, bare or in a code block
 *
 * Other headings, and lines that look like keys, belong to the goal.
 */
import { isTable, type Positions, type Table } from "./positions.ts";
import { readFrontMatter } from "./front-matter.ts";
import { yamlDocuments } from "./yaml-values.ts";

type Heading = "goal" | "steps" | "acceptance" | "checks";

/** With its offset. */
interface Line {
  readonly text: string;
  readonly at: number;
}

interface Section {
  readonly name: Heading;
  readonly at: number;
  readonly lines: Line[];
}

export function markdownTask(positions: Positions, text: string): readonly unknown[] {
  const { front, body, isUnclosed } = readFrontMatter(text);
  if (isUnclosed) {
    positions.problemAt(0, "", "the front matter has no end; close it with a line of ---");
    return [];
  }
  const documents = front === undefined ? [] : yamlDocuments(positions, front);
  const [table = {}, second] = documents;
  if (!isTable(table) || second !== undefined) {
    positions.problemAt(front?.base ?? 0, "", "front matter is one table: lines of key: value");
    return [];
  }
  const { title, sections } = readPage(linesOf(body.text, body.base));
  const sectionsGiven = sectionValues(positions, sections);
  if (title !== undefined && table["name"] === undefined) sectionsGiven.push(["name", title.text, title.at]);
  return [joined(positions, table, sectionsGiven)];
}

type SectionValue = readonly [key: string, value: unknown, at: number];

/** Front matter and page as one table; a key in both is a mistake. */
function joined(positions: Positions, table: Table, sectionsGiven: readonly SectionValue[]): Table {
  const keys = new Map<string | number, { readonly at: number; readonly word: string }>();
  for (const [key, , at] of sectionsGiven) {
    if (table[key] === undefined) keys.set(key, { at, word: key });
    else positions.problemAt(at, key, `"${key}" is in the front matter already; say it in one place`);
  }
  return positions.extended(table, Object.fromEntries(sectionsGiven.map(([key, value]) => [key, value])), keys);
}

function sectionValues(positions: Positions, sections: readonly Section[]): SectionValue[] {
  const sectionsGiven: SectionValue[] = [];
  const goals = sections
    .filter(({ name }) => name === "goal")
    .map((section) => ({ ...section, text: textOf(section) }));
  const goal = goals.filter(({ text }) => text !== "");
  if (goal[0] !== undefined) sectionsGiven.push(["goal", goal.map(({ text }) => text).join("\n\n"), goal[0].at]);
  for (const name of ["steps", "acceptance", "checks"] as const) {
    const [section, again] = sections.filter((one) => one.name === name);
    if (again !== undefined) positions.problemAt(again.at, name, `there is a second "## ${name}"; make one of both`);
    if (section === undefined) continue;
    sectionsGiven.push([
      name,
      name === "checks" ? checksOf(positions, section) : listOf(positions, section),
      section.at,
    ]);
  }
  return sectionsGiven;
}

function readPage(lines: readonly Line[]): {
  readonly title: Line | undefined;
  readonly sections: readonly Section[];
} {
  const first = lines.findIndex(({ text }) => text.trim() !== "");
  const heading = /^# +(.*)$/.exec(withoutClosing(lines[first]?.text ?? ""))?.[1];
  const title = heading === undefined || heading === "" ? undefined : { text: heading, at: lines[first]?.at ?? 0 };
  const begin = title === undefined ? 0 : first + 1;
  let section: Section = { name: "goal", at: lines[Math.max(first, 0)]?.at ?? 0, lines: [] };
  const sections = [section];
  let fence: string | undefined;
  for (const line of lines.slice(begin)) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line.text)?.[1];
    if (fence === undefined) fence = mark;
    else if (mark?.startsWith(fence) === true) fence = undefined;
    const name = fence === undefined && mark === undefined ? sectionName(line.text) : undefined;
    // An unknown heading after one of our lists continues the goal, so that nothing is lost.
    const isOther = name === undefined && fence === undefined && section.name !== "goal" && /^##? /.test(line.text);
    if (name === undefined && !isOther) {
      section.lines.push(line);
      continue;
    }
    section = { name: name ?? "goal", at: line.at, lines: isOther ? [line] : [] };
    sections.push(section);
  }
  return { title, sections };
}

/** Without the closing marks of a heading. Not a pattern, which would backtrack. */
function withoutClosing(line: string): string {
  const text = line.trimEnd();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return text.slice(0, end).trimEnd();
}

function sectionName(line: string): Heading | undefined {
  const word = /^## +(goal|steps|acceptance|checks)\s*:?$/i.exec(withoutClosing(line))?.[1]?.toLowerCase();
  return word === "goal" || word === "steps" || word === "acceptance" || word === "checks" ? word : undefined;
}

/** As written, without blank lines around it. */
function textOf({ lines }: Section): string {
  return lines
    .map(({ text }) => text)
    .join("\n")
    .replace(/^(?:[ \t]*\n)+/, "")
    .trimEnd();
}

const BULLET = /^(\s*)(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.*)$/;

/** Entries with the lines indented below them; a line without a bullet continues the entry above. */
function listOf(positions: Positions, { name, lines, at }: Section): unknown[] {
  const entries: { readonly title: string[]; readonly acceptance: string[][]; readonly at: number; indent: number }[] =
    [];
  for (const line of lines) {
    if (line.text.trim() === "") continue;
    const [, indent = "", text = ""] = BULLET.exec(line.text) ?? [];
    const last = entries.at(-1);
    if (text === "") {
      if (last === undefined) positions.problemAt(line.at, name, `"## ${name}" is a list; begin its lines with "- "`);
      else (last.acceptance.at(-1) ?? last.title).push(line.text.trim());
    } else if (last !== undefined && indent.length > last.indent) last.acceptance.push([text]);
    else entries.push({ title: [text], acceptance: [], at: line.at, indent: indent.length });
  }
  const list = entries.map(({ title, acceptance }) => {
    const under = acceptance.map((text) => text.join(" "));
    return under.length === 0 ? title.join(" ") : { title: title.join(" "), acceptance: under };
  });
  positions.set(list, at, new Map(entries.map((entry, index) => [index, { at: entry.at, word: `[${index}]` }])));
  return list;
}

/** YAML, bare or in one code block. */
function checksOf(positions: Positions, { lines, at }: Section): unknown {
  const isFence = ({ text }: Line): boolean => /^ {0,3}(?:`{3,}|~{3,})/.test(text);
  const open = lines.findIndex(isFence);
  const close = lines.findLastIndex(isFence);
  const taken = open >= 0 && close > open ? lines.slice(open + 1, close) : lines;
  const [value = []] = yamlDocuments(positions, {
    text: taken.map(({ text }) => text).join("\n"),
    base: taken[0]?.at ?? at,
  });
  return value;
}

function linesOf(text: string, base: number): readonly Line[] {
  let at = base;
  return text.split("\n").map((line) => {
    const here = { text: line.replace(/\r$/, ""), at };
    at += line.length + 1;
    return here;
  });
}
