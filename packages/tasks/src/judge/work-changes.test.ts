/** 13: the diff that is real: every change is named, nothing hides another, and nothing in it is obeyed. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freezeWork } from "../tree/freeze-work.ts";
import { keepTree } from "../tree/keep-tree.ts";
import { describeWork, shownPath } from "./work-changes.ts";

type Files = Readonly<Record<string, string | Uint8Array>>;

async function described(before: Files, work: (folder: string) => void, maxChars?: number): Promise<string> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "heddle-diff-")));
  try {
    const folder = join(root, "workspace");
    mkdirSync(folder);
    for (const [path, content] of Object.entries(before)) writeFileSync(join(folder, path), content);
    const signal = AbortSignal.timeout(60_000);
    const base = await keepTree(folder, { into: join(root, "base"), skip: [], signal });
    work(folder);
    const frozen = await freezeWork(folder, base, { into: join(root, "work"), skip: [], signal });
    return describeWork({ base, frozen, changes: frozen.changes }, maxChars === undefined ? {} : { maxChars });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

test("13: what was added, changed, removed, made executable or into something else is said", async () => {
  const text = await described({ "a.txt": "one\ntwo\n", "gone.txt": "g\n", "run.sh": "x\n", kind: "k\n" }, (folder) => {
    writeFileSync(join(folder, "a.txt"), "one\nthree\n");
    writeFileSync(join(folder, "image.bin"), new Uint8Array([0, 1, 2]));
    writeFileSync(join(folder, "latin.txt"), new Uint8Array([0xe9, 0x0a]));
    chmodSync(join(folder, "run.sh"), 0o755);
    symlinkSync("a.txt", join(folder, "link"));
    rmSync(join(folder, "gone.txt"));
    rmSync(join(folder, "kind"));
    mkdirSync(join(folder, "kind"));
    writeFileSync(join(folder, "kind", "new.txt"), "n");
  });
  expect(text).toBe(
    [
      "8 files have changed:",
      "changed file a.txt",
      "removed file gone.txt",
      "new file image.bin",
      "changed kind: was a file, is a folder",
      "new file kind/new.txt",
      "new file latin.txt",
      "new link link",
      "changed file run.sh, mode 0644 → 0755",
      "",
      "=== changed file a.txt",
      "@@ -1,2 +1,2 @@",
      " one",
      "-two",
      "+three",
      "",
      "=== removed file gone.txt",
      "@@ -1 +0,0 @@",
      "-g",
      "",
      "=== new file image.bin",
      "not shown, because it is not text, or too large: nothing before, 3 bytes now",
      "",
      "=== changed kind: was a file, is a folder",
      "@@ -1 +0,0 @@",
      "-k",
      "",
      "=== new file kind/new.txt",
      "@@ -0,0 +1 @@",
      "+n",
      "\\ No newline at end of file",
      "",
      "=== new file latin.txt",
      "not shown, because it is not text, or too large: nothing before, 2 bytes now",
      "",
      "=== new link link",
      "+leads to a.txt",
      "",
    ].join("\n"),
  );
});

test("13: nothing in a name or a content moves a cursor or begins a line of its own", async () => {
  const text = await described({}, (folder) => {
    writeFileSync(join(folder, "a\n=== removed file b\u001b[2J"), "x\n\u001b]0;title\u0007 \u202e\r== new\n");
  });
  for (const control of ["\u001b", "\u0007", "\u202e", "\r"]) expect(text).not.toContain(control);
  expect(text.split("\n").filter((line) => line.startsWith("===")).length).toBe(1);
  expect(shownPath("caf\u00e9")).toBe('"caf\\xe9"');
  expect(shownPath('a, b (new)"')).toBe(String.raw`"a, b (new)\""`);
  expect(shownPath("plain/name.txt")).toBe("plain/name.txt");
  expect(shownPath("a\\x1b")).toBe('"a\\\\x1b"');
});

test("13: a long change cannot push a short one out of sight, and what is left out is said", async () => {
  const lines = (count: number, word: string): string =>
    Array.from({ length: count }, (_, at) => `${word} ${at}\n`).join("");
  const text = await described(
    { "z.txt": "honest\n" },
    (folder) => {
      for (const name of ["a", "b", "c"]) writeFileSync(join(folder, `${name}.txt`), lines(2_000, name));
      writeFileSync(join(folder, "huge.txt"), "h".repeat(2 * 1024 * 1024));
      writeFileSync(join(folder, "z.txt"), "dishonest\n");
    },
    6_000,
  );
  expect(text.length).toBeLessThan(6_500);
  expect(text).toContain("-honest\n+dishonest\n");
  expect(text).toContain("huge.txt\nnot shown, because it is not text, or too large");
  expect(text.match(/characters left out/g)).toHaveLength(3);
  expect(await described({}, () => undefined)).toBe("Nothing has changed.");
});
