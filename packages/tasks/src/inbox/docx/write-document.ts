/** Writes facts as a document with one table: keys on the left, values on the right. */
import { stringify } from "yaml";
import { zipOf } from "./zip-writer.ts";

export function writeDocument(facts: Readonly<Record<string, unknown>>): Buffer {
  const rows = Object.entries(facts).map(([key, value]) => row(key, valueText(value)));
  return zipOf([
    { name: "[Content_Types].xml", text: CONTENT_TYPES },
    { name: "_rels/.rels", text: RELATIONSHIPS },
    { name: "word/document.xml", text: documentXml(rows.join("")) },
  ]);
}

const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const FORMATS = "http://schemas.openxmlformats.org";
const CONTENT_TYPES = `${HEAD}<Types xmlns="${FORMATS}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`;
const RELATIONSHIPS = `${HEAD}<Relationships xmlns="${FORMATS}/package/2006/relationships"><Relationship Id="rId1" Type="${FORMATS}/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`;
/** In twentieths of a point; together what an A4 page has between its margins. */
const WIDTHS = [2_200, 6_800] as const;
const BORDERS = ["top", "left", "bottom", "right", "insideH", "insideV"]
  .map((side) => `<w:${side} w:val="single" w:sz="4" w:space="0" w:color="auto"/>`)
  .join("");

function documentXml(rows: string): string {
  const grid = WIDTHS.map((width) => `<w:gridCol w:w="${width}"/>`).join("");
  const properties = `<w:tblW w:w="0" w:type="auto"/><w:tblBorders>${BORDERS}</w:tblBorders>`;
  const table = `<w:tbl><w:tblPr>${properties}</w:tblPr><w:tblGrid>${grid}</w:tblGrid>${rows}</w:tbl>`;
  // Word wants a paragraph behind a table.
  return `${HEAD}<w:document xmlns:w="${FORMATS}/wordprocessingml/2006/main"><w:body>${table}<w:p/><w:sectPr/></w:body></w:document>`;
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : stringify(value);
}

function row(key: string, text: string): string {
  return `<w:tr>${cell(WIDTHS[0], key)}${cell(WIDTHS[1], text)}</w:tr>`;
}

function cell(width: number, text: string): string {
  const lines = text.trimEnd().split(/\r\n|\r|\n/);
  return `<w:tc><w:tcPr><w:tcW w:w="${width}" w:type="dxa"/></w:tcPr>${lines.map(paragraph).join("")}</w:tc>`;
}

function paragraph(line: string): string {
  const pieces = line
    .split("\t")
    .map((piece) => (piece === "" ? "" : `<w:t xml:space="preserve">${escaped(piece)}</w:t>`));
  return `<w:p><w:r>${pieces.join("<w:tab/>")}</w:r></w:p>`;
}

/** Characters that XML cannot hold, such as terminal colours, are replaced. */
function escaped(text: string): string {
  return (
    text
      .toWellFormed()
      // oxlint-disable-next-line no-control-regex
      .replaceAll(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\ufffd")
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
  );
}
