/** Documents as word processors write them, and archives as they write none. */
import { crc32, deflateRawSync } from "node:zlib";

export interface ZipPart {
  readonly name: string;
  readonly data: string | Buffer;
  readonly isStored?: boolean;
  /** Sizes and sum stand behind the data, as LibreOffice and Google Docs write them. */
  readonly hasDescriptor?: boolean;
  /** Of the header before the data; Word leaves room there. */
  readonly extraBytes?: number;
  /** What the directory says instead of the truth. */
  readonly says?: {
    readonly flags?: number;
    readonly method?: number;
    readonly sum?: number;
    readonly packedBytes?: number;
    readonly sizeBytes?: number;
    readonly at?: number;
    readonly localName?: string;
  };
}

export function zipAs(parts: readonly ZipPart[], end: { readonly comment?: string } = {}): Buffer {
  const files: Buffer[] = [];
  const entries: Buffer[] = [];
  let at = 0;
  for (const part of parts) {
    const { name, hasDescriptor = false, extraBytes = 0, says = {} } = part;
    const data = Buffer.from(part.data);
    const packed = part.isStored === true ? data : deflateRawSync(data);
    const sum = says.sum ?? crc32(data);
    const packedBytes = says.packedBytes ?? packed.length;
    const sizeBytes = says.sizeBytes ?? data.length;
    const flags = says.flags ?? (hasDescriptor ? 0x0808 : 0x0006);
    const method = says.method ?? (part.isStored === true ? 0 : 8);
    const head = [2, 20, 2, flags, 2, method, 2, 0, 2, 33];
    const sizes = [4, sum, 4, packedBytes, 4, sizeBytes];
    const localName = says.localName ?? name;
    const local = Buffer.concat([
      numbers(4, 0x04034b50, ...head, ...(hasDescriptor ? [4, 0, 4, 0, 4, 0] : sizes)),
      numbers(2, Buffer.byteLength(localName), 2, extraBytes),
      Buffer.from(localName),
      Buffer.alloc(extraBytes),
      packed,
      hasDescriptor ? numbers(4, 0x08074b50, ...sizes) : Buffer.alloc(0),
    ]);
    entries.push(
      numbers(4, 0x02014b50, 2, 45, ...head, ...sizes, 2, Buffer.byteLength(name), 2, 0, 2, 0),
      numbers(2, 0, 2, 0, 4, 0, 4, says.at ?? at),
      Buffer.from(name),
    );
    files.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(entries);
  const comment = Buffer.from(end.comment ?? "");
  const counts = numbers(4, 0x06054b50, 2, 0, 2, 0, 2, parts.length, 2, parts.length);
  const rest = numbers(4, directory.length, 4, at, 2, comment.length);
  return Buffer.concat([...files, directory, counts, rest, comment]);
}

/** Pairs of width and value, little end first. */
function numbers(...pairs: readonly number[]): Buffer {
  const fields: Buffer[] = [];
  for (let at = 0; at < pairs.length; at += 2) {
    const field = Buffer.alloc(pairs[at] ?? 0);
    field.writeUIntLE(pairs[at + 1] ?? 0, 0, field.length);
    fields.push(field);
  }
  return Buffer.concat(fields);
}

const WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";

/** What stands in word/document.xml around the body. */
export function documentXml(
  body: string,
  head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n',
): string {
  return `${head}<w:document xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml" xmlns:w="${WORD}" mc:Ignorable="w14"><w:body>${body}<w:sectPr w:rsidR="00A77427"><w:pgSz w:w="11906" w:h="16838"/></w:sectPr></w:body></w:document>`;
}

/** A whole file, with the parts that are of no interest to an order. */
export function docx(body: string, document: Partial<ZipPart> = {}): Buffer {
  return zipAs([
    { name: "[Content_Types].xml", data: "<Types/>", extraBytes: 544 },
    { name: "_rels/.rels", data: "<Relationships/>", hasDescriptor: true },
    { name: "word/document.xml", data: documentXml(body), ...document },
    { name: "word/vbaProject.bin", data: Buffer.from("Sub AutoOpen()"), isStored: true },
    { name: "../../../etc/cron.d/evil", data: "* * * * * root sh" },
    { name: "/etc/evil", data: "evil", isStored: true },
  ]);
}

export const paragraph = (text: string): string => `<w:p><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`;

export const row = (...cells: readonly string[]): string =>
  `<w:tr>${cells.map((cell) => `<w:tc>${cell.startsWith("<") ? cell : paragraph(cell)}</w:tc>`).join("")}</w:tr>`;

export const table = (...rows: readonly string[]): string => `<w:tbl>${rows.join("")}</w:tbl><w:p/>`;
