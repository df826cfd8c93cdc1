/**
 * The first table of two columns in a document (word/document.xml), as rows of visible text: runs are joined, paragraphs
 * and breaks are lines, tabs stay. Pictures, comments, deleted and hidden text and unfilled fields are skipped.
 */
import { HeddleError } from "@heddle/protocol";
import { attributeOf, elementsOf, parseXml, type XmlElement } from "./xml-tree.ts";
import { readZipEntry } from "./zip-reader.ts";

export interface DocumentRow {
  readonly number: number;
  readonly key: string;
  readonly text: string;
}

const DOCUMENT = "word/document.xml";
/** Word needs about ten times as many characters as the text; an order has at most 1 MiB. */
const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;
/** More than there are keys. */
const MAX_ROWS = 200;
/** Transitional, which everybody writes, and strict. */
const NAMESPACES: ReadonlySet<string> = new Set([
  "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
  "http://purl.oclc.org/ooxml/wordprocessingml/main",
]);

export function readDocumentTable(archive: Buffer): readonly DocumentRow[] {
  const bytes = readZipEntry(archive, { name: DOCUMENT, maxBytes: MAX_DOCUMENT_BYTES });
  if (bytes === undefined) throw invalid("there is no text document in it; save it as .docx from a word processor");
  for (const table of find(parseXml(utf8(bytes), NAMESPACES), "tbl")) {
    const rows = find(table, "tr").map((row) => find(row, "tc"));
    if (Math.max(0, ...rows.slice(0, MAX_ROWS).map(widthOf)) === 2) return pairs(rows);
  }
  throw invalid("there is no table of two columns in it; write one, with keys such as goal on the left");
}

function utf8(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    const message = "its text is not UTF-8; open it, and save it again as .docx";
    throw new HeddleError("task.invalid", message, { cause: error });
  }
}

function pairs(rows: readonly (readonly XmlElement[])[]): readonly DocumentRow[] {
  if (rows.length > MAX_ROWS) throw invalid(`its table has over ${MAX_ROWS} rows; an order has one for each key`);
  const found: { readonly number: number; readonly key: string; text: string }[] = [];
  for (const [index, [left, right]] of rows.entries()) {
    // One cell over both columns is a heading.
    if (left === undefined || right === undefined) continue;
    const last = found.at(-1);
    // A key that is merged with the one above continues its value.
    if (last !== undefined && isContinued(left)) last.text += `\n${textOf(right)}`;
    else found.push({ number: index + 1, key: textOf(left), text: textOf(right) });
  }
  return found;
}

/**
 * Elements without visible text: properties, pictures, deletions, pronunciations. `mc:Choice` is followed by what programs
 * that do not know it show.
 */
const SILENT: ReadonlySet<string> = new Set(
  "pPr rPr tblPr tblGrid trPr tcPr sdtPr sectPr drawing pict object del moveFrom rt mc:Choice".split(" "),
);

/** Also inside content controls, but not inside one another. */
function find(element: XmlElement, name: string): readonly XmlElement[] {
  return elementsOf(element).flatMap((child) => {
    if (child.name === name) return [child];
    return child.name === "p" || SILENT.has(child.name) ? [] : find(child, name);
  });
}

function widthOf(cells: readonly XmlElement[]): number {
  return cells.reduce((sum, cell) => sum + (Number(valueOf(property(cell, "tcPr", "gridSpan"))) || 1), 0);
}

function isContinued(cell: XmlElement): boolean {
  const merged = property(cell, "tcPr", "vMerge");
  return merged !== undefined && valueOf(merged) !== "restart";
}

function property(element: XmlElement, group: string, name: string): XmlElement | undefined {
  const properties = elementsOf(element).find((child) => child.name === group);
  return properties === undefined ? undefined : elementsOf(properties).find((child) => child.name === name);
}

function valueOf(element: XmlElement | undefined): string | undefined {
  return element === undefined ? undefined : attributeOf(element, "val");
}

/** A switch without a value is on. */
function isOn(element: XmlElement | undefined): boolean {
  return element !== undefined && !["0", "false", "off"].includes(valueOf(element) ?? "");
}

function textOf(cell: XmlElement): string {
  const pieces: string[] = [];
  collect(cell, pieces);
  const text = pieces
    .join("")
    .replace(/^(?:[ \t]*\n)+/, "")
    .trimEnd();
  return text.includes("\n") ? text : text.trimStart();
}

function collect(element: XmlElement, pieces: string[]): void {
  for (const child of elementsOf(element)) {
    switch (child.name) {
      case "t":
        pieces.push(runText(child));
        break;
      case "tab":
      case "ptab":
        pieces.push("\t");
        break;
      case "br":
      case "cr":
        pieces.push("\n");
        break;
      case "noBreakHyphen":
        pieces.push("-");
        break;
      case "p":
        collect(child, pieces);
        pieces.push("\n");
        break;
      case "r":
        if (!isOn(property(child, "rPr", "vanish"))) collect(child, pieces);
        break;
      case "sdt":
        // The text of an unfilled field is a prompt to fill it.
        if (!isOn(property(child, "sdtPr", "showingPlcHdr"))) collect(child, pieces);
        break;
      default:
        if (!SILENT.has(child.name)) collect(child, pieces);
    }
  }
}

/** Spaces at its ends count only with `preserve`; a line end in the file is a space. */
function runText(element: XmlElement): string {
  const text = element.children.filter((child) => typeof child === "string").join("");
  const kept = attributeOf(element, "space") === "preserve" ? text : text.trim();
  return kept.replaceAll(/[\r\n]+/g, " ");
}

function invalid(message: string): HeddleError {
  return new HeddleError("task.invalid", message);
}
