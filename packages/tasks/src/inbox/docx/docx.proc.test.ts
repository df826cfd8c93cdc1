import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { writeDocument } from "./write-document.ts";

const PACKAGE = path.join(import.meta.dirname, "../../..");

test.runIf(hasPython())(
  "78: a document that is written here is whole to another program's eyes (needs python3)",
  async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "heddle-docx-"));
    const script = `
import json, sys, zipfile
import xml.etree.ElementTree as xml
w = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
archive = zipfile.ZipFile(sys.argv[1])
root = xml.fromstring(archive.read("word/document.xml"))
rows = [["".join(t.text for t in cell.iter(w + "t")) for cell in row.iter(w + "tc")] for row in root.iter(w + "tr")]
for name in archive.namelist(): xml.fromstring(archive.read(name))
print(json.dumps({"bad": archive.testzip(), "names": archive.namelist(), "rows": rows}))
`;
    try {
      const file = path.join(folder, "a.docx");
      await writeFile(file, writeDocument({ goal: "a <b> & “c”", ü: "\u0007bell", ok: true }));
      const { stdout } = await promisify(execFile)("python3", ["-c", script, file]);
      expect(JSON.parse(stdout)).toEqual({
        bad: null,
        names: ["[Content_Types].xml", "_rels/.rels", "word/document.xml"],
        rows: [
          ["goal", "a <b> & “c”"],
          ["ü", "\uFFFDbell"],
          ["ok", "true"],
        ],
      });
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);

test("78: nothing of documents is loaded before one is met", async () => {
  const script = `
import { registerHooks } from "node:module";
const seen = [];
registerHooks({
  load(url, context, next) {
    if (url.includes("/inbox/")) seen.push(url.split("/inbox/")[1]);
    return next(url, context);
  },
});
const { takeOrder } = await import("./src/index.ts");
await takeOrder({}, { file: "a.md", text: "---\\n", source: { kind: "inbox" } }).catch(() => undefined);
const before = seen.filter((name) => name.startsWith("docx/"));
await takeOrder({}, { file: "a.docx", text: "PK", source: { kind: "inbox" } }).catch(() => undefined);
console.log(JSON.stringify({ before, after: seen }));
`;
  const args = ["--conditions=heddle-source", "--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: PACKAGE });
  const { before, after } = JSON.parse(stdout);
  expect(before).toEqual([]);
  expect(after).toEqual(expect.arrayContaining(["take-order.ts", "docx/order-from-document.ts"]));
});

function hasPython(): boolean {
  try {
    execFileSync("python3", ["-c", "import zipfile"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
