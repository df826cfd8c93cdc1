import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { isHeddleError } from "@heddle/protocol";
import { openTestInbox, order } from "../../../test/test-inbox.ts";
import { eventually } from "../../../test/test-store.ts";
import { documentXml, docx, row, table, zipAs, type ZipPart } from "../../../test/word-document.ts";
import { orderFromDocument } from "./order-from-document.ts";

const NAME = "word/document.xml";
const BODY = table(row("goal", "x"));
const MIB = 1024 * 1024;
/** Of blanks, which pack a thousandfold. */
const bomb = (bytes: number): Buffer => Buffer.alloc(bytes, 0x20);
const part = (says: NonNullable<ZipPart["says"]>): Buffer => docx(BODY, { says });
const xml = (text: string | Buffer): Buffer => zipAs([{ name: NAME, data: text }]);
const goal = (inner: string): Buffer => docx(table(row("goal", `<w:p><w:r>${inner}</w:r></w:p>`)));
const deep = (count: number): string => "<w:sdt>".repeat(count) + "</w:sdt>".repeat(count);

/** The end of the directory with other numbers, at the offset where they stand. */
function withEnd(at: number, value: number, bytes: 2 | 4): Buffer {
  const archive = Buffer.from(docx(BODY));
  archive.writeUIntLE(value, archive.length - 22 + at, bytes);
  return archive;
}

function withBoth(count: number): Buffer {
  const archive = withEnd(8, count, 2);
  archive.writeUInt16LE(count, archive.length - 12);
  return archive;
}

const HOSTILE: readonly (readonly [name: string, bytes: Buffer, reason: string])[] = [
  ["two-letters", Buffer.from("PK"), "it is not a .docx, or its end is missing"],
  ["renamed-doc", Buffer.concat([Buffer.from("d0cf11e0a1b11ae1", "hex"), bomb(600)]), "without a password"],
  ["cut-off", docx(BODY).subarray(0, -40), "it is not a .docx, or its end is missing"],
  ["bytes-behind", Buffer.concat([docx(BODY), bomb(3)]), "it is not a .docx, or its end is missing"],
  ["entries-elsewhere", withEnd(10, 7, 2), "one part of a divided archive"],
  ["more-entries", withBoth(7), "its list of parts is cut off"],
  ["many-entries", withBoth(3_000), "over 2000 parts"],
  ["directory-size", withEnd(12, 0x7fffffff, 4), "its list of parts is cut off"],
  ["directory-offset", withEnd(16, 0x7fffffff, 4), "its list of parts is cut off"],
  ["zip64-directory", withEnd(16, 0xffffffff, 4), "zip64"],
  ["zip64-entry", part({ packedBytes: 0xffffffff, sizeBytes: 0xffffffff }), "zip64"],
  ["other-disk", withEnd(4, 1, 2), "divided archive"],
  ["encrypted", part({ flags: 1 }), "it is encrypted; save it without a password"],
  ["packed-otherwise", part({ method: 12 }), "packed in a way that is not supported (12)"],
  ["honest-bomb", xml(bomb(64 * MIB)), "its text is over 8 MiB"],
  ["lying-bomb", zipAs([{ name: NAME, data: bomb(64 * MIB), says: { sizeBytes: 100 } }]), "does not match its size"],
  ["stored-lie", docx(BODY, { isStored: true, says: { sizeBytes: 5 } }), "is not what the archive says"],
  ["too-short", part({ sizeBytes: 5_000 }), "is not what the archive says"],
  ["wrong-sum", part({ sum: 1 }), "is not what the archive says"],
  ["cut-data", part({ packedBytes: 20 }), "does not match its size"],
  ["data-outside", part({ packedBytes: 0x7ffffff0 }), "is not where the archive says"],
  ["offset-outside", part({ at: 0x7ffffff0 }), "is not where the archive says"],
  ["offset-of-another", part({ at: 0 }), "is not where the archive says"],
  ["two-names", part({ localName: "word/documenu.xml" }), "is not where the archive says"],
  ["twice", zipAs([1, 2].map((n) => ({ name: NAME, data: documentXml(table(row("goal", `${n}`))) }))), "in it twice"],
  ["no-document", zipAs([{ name: "../word/document.xml", data: documentXml(BODY) }]), "no text document in it"],
  ["spreadsheet", xml("<workbook/>"), "it is not a text document"],
  ["empty", xml(""), "it ends too early"],
  [
    "entities",
    xml(`<!DOCTYPE w [<!ENTITY a "${"a".repeat(99)}"><!ENTITY b SYSTEM "/etc/passwd">]>${documentXml(BODY, "")}`),
    "it has a document type",
  ],
  ["unknown-entity", goal("<w:t>&b;</w:t>"), 'an entity that is not read: "&b;"'],
  ["bare-ampersand", goal("<w:t>a & b</w:t>"), "an entity that is not read"],
  ["nul-entity", goal("<w:t>&#0;</w:t>"), "control characters"],
  ["half-a-character", goal("<w:t>&#xD800;</w:t>"), "an entity that is not read"],
  ["beyond-unicode", goal("<w:t>&#x110000;</w:t>"), "an entity that is not read"],
  ["control", goal("<w:t>\u001B[2J</w:t>"), "control characters"],
  ["latin1", xml(Buffer.from(documentXml(table(row("goal", "w\u00e4"))), "latin1")), "not UTF-8"],
  ["utf16", xml(Buffer.from(`\uFEFF${documentXml(BODY)}`, "utf16le")), "not UTF-8"],
  ["deep", docx(deep(10_000)), "nested more than 200 deep"],
  ["deep-tables", docx("<w:tbl><w:tr><w:tc>".repeat(3_000)), "nested more than 200 deep"],
  ["unclosed", xml(documentXml(BODY).slice(0, -30)), "its text is damaged"],
  ["crossed", docx("<w:p><w:r></w:p></w:r>"), "are not closed in order"],
  ["unclosed-comment", docx("<!-- ".repeat(1_000)), "ends too early"],
  ["unclosed-quote", docx('<w:p a="'), "begins nothing"],
  ["angle-brackets", docx("<".repeat(MIB)), "begins nothing"],
  ["many-elements", docx("<w:p/>".repeat(300_000)), "over 250000 elements"],
  ["no-table", docx("<w:p/>"), "no table of two columns"],
  ["three-columns", docx(table(row("goal", "x", "y"))), "no table of two columns"],
  ["many-rows", docx(table(...Array.from({ length: 300 }, () => row("goal", "x")))), "over 200 rows"],
  ["long-text", goal(`<w:t>${"a".repeat(2 * MIB)}</w:t>`), "it is over 1 MiB"],
  ["long-key", docx(table(row("k".repeat(MIB), "x"))), "long-key.docx:1:1: a key is one word"],
  ["no-key", docx(table(row("goal", "x"), row("", "y"))), "no-key.docx:2:1: there is a value without a key"],
  ["proto", docx(table(row("__proto__", "x"), row("goal", "x"))), 'proto.docx:1:1: unknown key "__proto__"'],
  ["deep-yaml", docx(table(row("goal", "x"), row("checks", "[".repeat(5_000)))), "deep-yaml.docx (row 2, checks):1:1"],
];

test("78: whatever is wrong with a document becomes a reason beside it, once, and nothing else", async () => {
  await using t = await openTestInbox();
  await using _inbox = await t.open({ defaultWorkspace: t.workspace });
  for (const [name, bytes] of HOSTILE) {
    expect(bytes.length, name).toBeLessThan(MIB);
    await t.put(`${name}.docx`, bytes);
  }
  const reasons = HOSTILE.map(([name]) => `${name}.docx.error-parse-failed.reason.txt`);
  await eventually("every reason", async () => {
    const files = new Set(await t.files());
    return reasons.every((name) => files.has(name)) || undefined;
  });
  for (const [name, , reason] of HOSTILE) {
    const told = await readFile(path.join(t.folder, `${name}.docx.error-parse-failed.reason.txt`), "utf8");
    expect(told, name).toContain(`${name}.docx did not become a task.`);
    expect(told, name).toContain(reason);
  }
  // The inbox goes on, has tried nothing twice, and nothing was written anywhere else.
  await t.put("after.md", order(t.workspace));
  await t.appears("after.md.processed-");
  expect(await t.tasks()).toHaveLength(1);
  expect(t.said).toHaveLength(HOSTILE.length);
  expect(await t.files()).toHaveLength(2 * HOSTILE.length + 1);
  expect(await readdir(t.workspace)).toEqual([]);
});

test("78: a document that is cut or changed anywhere is read or refused, and never anything else", () => {
  const whole = docx(table(row("goal", "x".repeat(300)), row("checks", "tests: npm test")));
  let refusals = 0;
  const attempt = (bytes: Buffer, what: string): void => {
    try {
      expect(typeof orderFromDocument("order.docx", bytes), what).toBe("string");
    } catch (error) {
      refusals += 1;
      expect(isHeddleError(error) && error.code, `${what}: ${String(error)}`).toBe("task.invalid");
    }
  };
  for (let length = 0; length < whole.length; length += 1) attempt(whole.subarray(0, length), `cut at ${length}`);
  for (let at = 0; at < whole.length; at += 1) {
    const changed = Buffer.from(whole);
    changed[at] = ((changed[at] ?? 0) + 1 + (at % 200)) & 0xff;
    attempt(changed, `changed at ${at}`);
  }
  expect(refusals).toBeGreaterThan(whole.length);
});

test("78: a tag of megabytes, and blanks of megabytes, take time by their length and not by its square", () => {
  for (const tag of [
    `<w:t ${"a".repeat(4 * MIB)}/>`,
    `<w:t a="${" ".repeat(4 * MIB)}"/>`,
    `<w:t ${" ".repeat(4 * MIB)}/>`,
  ])
    expect(orderFromDocument("order.docx", goal(`${tag}<w:t>${" ".repeat(MIB)}x</w:t>`))).toBe('"goal": "x"');
  const blanks = `<w:t xml:space="preserve">${" ".repeat(MIB - 2)}</w:t>`;
  expect(orderFromDocument("order.docx", goal(`${blanks}<w:br/><w:t>x</w:t>`))).toBe('"goal": "x"');
});
