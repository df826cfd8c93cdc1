import { describe, expect, test } from "vitest";
import { docx, paragraph, row, table, zipAs } from "../../../test/word-document.ts";
import { readDocumentTable } from "./document-table.ts";
import { writeDocument } from "./write-document.ts";

const read = (body: string): readonly (readonly [string, string])[] =>
  readDocumentTable(docx(body)).map(({ key, text }) => [key, text]);

/** As Word writes them: a run ends where the author stopped, where spelling is marked, where a format changes. */
const GOAL = `<w:p w14:paraId="1A2B3C4D" w:rsidR="00A77427"><w:pPr><w:tabs><w:tab w:val="left" w:pos="720"/></w:tabs><w:rPr><w:vanish/><w:lang w:val="en-GB"/></w:rPr></w:pPr><w:r w:rsidRPr="00C2"><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">The but</w:t></w:r><w:proofErr w:type="spellStart"/><w:r><w:t>ton</w:t></w:r><w:proofErr w:type="spellEnd"/><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t xml:space="preserve"> “login” &amp; it&#8217;s &lt;b&gt;</w:t></w:r><w:bookmarkStart w:id="0" w:name="_GoBack"/><w:bookmarkEnd w:id="0"/></w:p>
<w:p><w:r><w:tab/><w:t>indented</w:t><w:br/><w:t xml:space="preserve">after a break </w:t></w:r><w:hyperlink r:id="rId4"><w:r><w:rPr><w:rStyle w:val="Hyperlink"/></w:rPr><w:t>with a link</w:t></w:r></w:hyperlink><w:r><w:cr/><w:t>non</w:t><w:noBreakHyphen/><w:t>stop</w:t></w:r></w:p><w:p/>
<w:p><w:smartTag><w:r><w:t>The </w:t></w:r><w:r><w:t xml:space="preserve"> end</w:t></w:r></w:smartTag></w:p>`;

describe("78: the table of a document", () => {
  test("is read as its author sees it: runs joined, paragraphs and breaks as lines, tabs and quotes kept", () => {
    expect(read(`${paragraph("An order")}${table(row("goal", GOAL))}`)).toEqual([
      ["goal", "The button “login” & it’s <b>\n\tindented\nafter a break with a link\nnon-stop\n\nThe end"],
    ]);
  });

  test("is found and read inside content controls; an unfilled one says nothing", () => {
    const control = (inner: string, more = ""): string =>
      `<w:sdt><w:sdtPr><w:rPr><w:vanish/></w:rPr><w:id w:val="7"/>${more}</w:sdtPr><w:sdtContent>${inner}</w:sdtContent></w:sdt>`;
    const field = control('<w:r><w:t xml:space="preserve">in a field</w:t></w:r>');
    const hint = control("<w:r><w:t>Click or tap here to enter text.</w:t></w:r>", "<w:showingPlcHdr/>");
    const rows = [row("goal", `<w:p>${field}</w:p>`), control(row("name", `<w:p>${hint}</w:p>`))];
    const cells = `<w:tr>${control("<w:tc><w:p><w:r><w:t>model</w:t></w:r></w:p></w:tc>")}<w:tc>${paragraph("m")}</w:tc></w:tr>`;
    expect(read(control(table(...rows, cells)))).toEqual([
      ["goal", "in a field"],
      ["name", ""],
      ["model", "m"],
    ]);
  });

  test("leaves out what is deleted, moved away, hidden, drawn, or an instruction of a field", () => {
    const run = (inner: string): string => `<w:r>${inner}</w:r>`;
    const goal = [
      run("<w:t>seen</w:t>"),
      `<w:del w:id="1">${run("<w:delText>deleted</w:delText>")}</w:del>`,
      `<w:moveFrom w:id="2">${run("<w:t>moved</w:t>")}</w:moveFrom>`,
      `<w:ins w:id="3">${run('<w:t xml:space="preserve"> and added</w:t>')}</w:ins>`,
      run("<w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t>"),
      run("<w:drawing><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></w:drawing>"),
      run('<w:fldChar w:fldCharType="begin"/>') + run("<w:instrText> PAGE </w:instrText>"),
      run(
        "<mc:AlternateContent><mc:Choice Requires='w16se'><w:t>twice</w:t></mc:Choice><mc:Fallback><w:t>!</w:t></mc:Fallback></mc:AlternateContent>",
      ),
      "<!-- <w:r><w:t>comment</w:t></w:r> --><?pi <w:t>?>",
      run("<w:t><![CDATA[ <as it is> ]]></w:t>"),
    ];
    expect(read(table(row("goal", `<w:p>${goal.join("")}</w:p>`)))).toEqual([["goal", "seen and added!<as it is>"]]);
  });

  test("is the first of two columns; cells over both are headings, keys merged downwards go on, tables in cells are lines", () => {
    const over = `<w:tr><w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>${paragraph("Where")}</w:tc></w:tr>`;
    const merged = (how: string, text: string): string =>
      `<w:tcPr><w:vMerge${how}/></w:tcPr>${text === "" ? "<w:p/>" : paragraph(text)}`;
    const inner = `${table(row("goal", "inner"), row("x", "y"))}`;
    expect(
      read(
        [
          table(row("one column")),
          table(row("a", "b", "c"), row("goal", "no")),
          table(
            over,
            row(merged(' w:val="restart"', "goal"), "first"),
            row(merged("", ""), "second"),
            row(merged(' w:val="continue"', ""), "third"),
            row("steps", `${inner}${paragraph("last")}`),
            row("short"),
          ),
          table(row("goal", "a later table")),
        ].join(""),
      ),
    ).toEqual([
      ["goal", "first\nsecond\nthird"],
      ["steps", "goal\ninner\nx\ny\n\nlast"],
    ]);
  });

  test("is numbered by the rows of the page", () => {
    const rows = readDocumentTable(docx(table(row("heading"), row("goal", "x"), row("", ""), row("name", "y"))));
    expect(rows.map(({ number }) => number)).toEqual([2, 3, 4]);
  });

  test.each([
    ["stored", { isStored: true }],
    ["deflated, with its sizes behind it", { hasDescriptor: true }],
    ["stored, with its sizes behind it", { isStored: true, hasDescriptor: true }],
    ["with room before it", { extraBytes: 4_000 }],
  ])("is read from an archive where it is %s", (_how, part) => {
    expect(readDocumentTable(docx(table(row("goal", "x")), part))).toEqual([{ number: 1, key: "goal", text: "x" }]);
  });

  test("is read behind a byte order mark, in other prefixes, and from an archive with a comment", () => {
    const strict = `\uFEFF<document xmlns='http://purl.oclc.org/ooxml/wordprocessingml/main'><body><tbl ><tr><tc><p><r><t>goal</t></r></p></tc><tc><p><r><t xml:space = "preserve"> a&#x20;b </t></r></p></tc></tr></tbl ></body></document>`;
    const archive = zipAs([{ name: "word/document.xml", data: strict }], { comment: "PK\u0005\u0006 is no end" });
    expect(readDocumentTable(archive)).toEqual([{ number: 1, key: "goal", text: "a b" }]);
  });

  test("that was written here is read back as it was, apart from what XML cannot hold", () => {
    const facts = {
      empty: "",
      words: 'a\tb  "c" <d> & ]]> ’ 😀\n\n  indented\nlast',
      colours: "\u001B[31mred\ud800",
      is: true,
      count: 7,
      list: [{ name: "one: two", outcome: "pass" }],
    };
    const rows = readDocumentTable(writeDocument(facts));
    expect(Object.fromEntries(rows.map(({ key, text }) => [key, text]))).toEqual({
      ...facts,
      colours: "\uFFFD[31mred\uFFFD",
      is: "true",
      count: "7",
      list: '- name: "one: two"\n  outcome: pass',
    });
  });

  test("of a page with a megabyte in small runs is read whole", () => {
    const runs = "<w:r><w:rPr><w:b/></w:rPr><w:t>0123456789abcdef0123456789abcdef</w:t></w:r>".repeat(32 * 1024);
    const [first] = readDocumentTable(docx(table(row("goal", `<w:p>${runs}</w:p>`))));
    expect(first?.text).toBe("0123456789abcdef0123456789abcdef".repeat(32 * 1024));
  });
});
