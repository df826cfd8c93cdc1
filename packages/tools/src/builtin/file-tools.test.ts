import { existsSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openFixture, textOf } from "../../test/fixture.ts";

const open = (files: Record<string, string | Uint8Array> = {}) =>
  openFixture({ sandbox: "none", family: "anthropic", files });

test("read shows numbered lines and where to read on", async () => {
  await using fixture = await open({ "a.txt": "one\ntwo\nthree\n", "empty.txt": "", "long.txt": "x\n".repeat(5000) });
  expect(textOf(await fixture.call("read", { file_path: "a.txt" }))).toBe("     1\tone\n     2\ttwo\n     3\tthree\n");
  expect(textOf(await fixture.call("read", { file_path: "a.txt", offset: 2, limit: 1 }))).toBe(
    "     2\ttwo\n[lines 3 to 3 not shown; read on with offset 3]\n",
  );
  expect(textOf(await fixture.call("read", { file_path: "empty.txt" }))).toBe("(the file is empty)");
  expect(textOf(await fixture.call("read", { file_path: "a.txt", offset: 9 }))).toContain("has 3 lines");
  const long = textOf(await fixture.call("read", { file_path: "long.txt" }));
  expect(long).toContain("[lines 2001 to 5000 not shown; read on with offset 2001]");
});

test("read is capped in bytes and in the length of a line", async () => {
  await using fixture = await open({
    "wide.txt": `${"y".repeat(5000)}\n`,
    "big.txt": `${"z".repeat(1000)}\n`.repeat(500),
  });
  expect(textOf(await fixture.call("read", { file_path: "wide.txt" }))).toContain("[... 3000 characters left out]");
  const big = textOf(await fixture.call("read", { file_path: "big.txt" }));
  expect(Buffer.byteLength(big)).toBeLessThanOrEqual(33 * 1024);
  expect(big).toMatch(/\[lines \d+ to 500 not shown/);
});

test("read says plainly what it cannot show", async () => {
  await using fixture = await open({
    "b.bin": new Uint8Array([1, 0, 2]),
    "latin.txt": new Uint8Array([0xe9, 0x0a]),
    "d/x": "",
  });
  const failed = async (file_path: string): Promise<string> => {
    const outcome = await fixture.call("read", { file_path });
    expect(outcome).toMatchObject({ kind: "failed", item: { status: "failed" } });
    return textOf(outcome);
  };
  expect(await failed("b.bin")).toContain("not a UTF-8 text file (3 bytes, binary)");
  expect(await failed("latin.txt")).toContain("not a UTF-8 text file");
  expect(await failed("nothing.txt")).toContain("does not exist");
  expect(await failed("d")).toMatch(/folder|directory/);
});

test("edit replaces exact text once, or everywhere when told", async () => {
  await using fixture = await open({ "a.txt": "a b a\n" });
  const path = join(fixture.workspace, "a.txt");
  expect(textOf(await fixture.call("edit", { file_path: "a.txt", old_string: "a", new_string: "c" }))).toContain(
    "occurs 2 times",
  );
  expect(await readFile(path, "utf8")).toBe("a b a\n");
  const outcome = await fixture.call("edit", { file_path: "a.txt", old_string: "b", new_string: "$&$1" });
  expect(await readFile(path, "utf8")).toBe("a $&$1 a\n");
  expect(outcome.item).toMatchObject({
    type: "fileChange",
    status: "completed",
    changes: [{ path, kind: "update", diff: "@@ -1 +1 @@\n-a b a\n+a $&$1 a\n" }],
  });
  await fixture.call("edit", { file_path: "a.txt", old_string: "a", new_string: "c", replace_all: true });
  expect(await readFile(path, "utf8")).toBe("c $&$1 c\n");
});

test("edit helps a model that is nearly right", async () => {
  await using fixture = await open({ "a.txt": "x\n  if (a) {\n", "crlf.txt": "a\r\nb\r\n" });
  expect(
    textOf(await fixture.call("edit", { file_path: "a.txt", old_string: "if (a) {\n    y", new_string: "" })),
  ).toContain("line 2 is like its first line");
  expect(textOf(await fixture.call("edit", { file_path: "gone.txt", old_string: "a", new_string: "b" }))).toContain(
    "does not exist",
  );
  await fixture.call("edit", { file_path: "crlf.txt", old_string: "a\nb", new_string: "c\nd" });
  expect(await readFile(join(fixture.workspace, "crlf.txt"), "utf8")).toBe("c\r\nd\r\n");
});

test("write makes folders, replaces files and shows the change", async () => {
  await using fixture = await open();
  const path = join(fixture.workspace, "new/deep/a.txt");
  expect((await fixture.call("write", { file_path: "new/deep/a.txt", content: "1\n" })).item).toMatchObject({
    changes: [{ path, kind: "add", diff: "@@ -0,0 +1 @@\n+1\n" }],
  });
  const second = await fixture.call("write", { file_path: path, content: "2\n" });
  expect(second.item).toMatchObject({ changes: [{ kind: "update", diff: "@@ -1 +1 @@\n-1\n+2\n" }] });
  expect(await readFile(path, "utf8")).toBe("2\n");
});

test("list and glob show what is there", async () => {
  await using fixture = await open({
    "b.txt": "",
    "a/x.ts": "",
    "a/b/y.ts": "",
    "node_modules/z.ts": "",
    ".git/w.ts": "",
  });
  expect(textOf(await fixture.call("list", {}))).toBe(".git/\na/\nb.txt\nnode_modules/");
  expect(textOf(await fixture.call("list", { path: "missing" }))).toContain("does not exist");
  expect(textOf(await fixture.call("glob", { pattern: "**/*.ts" }))).toBe(
    [join(fixture.workspace, "a/x.ts"), join(fixture.workspace, "a/b/y.ts")].join("\n"),
  );
  expect(textOf(await fixture.call("glob", { pattern: "*.md" }))).toBe("No files match.");
});

test("many files are cut with a mark", async () => {
  const files = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`f${index}.txt`, ""]));
  await using fixture = await open(files);
  const lines = textOf(await fixture.call("glob", { pattern: "*" })).split("\n");
  expect(lines).toHaveLength(501);
  expect(lines.at(-1)).toContain("more files may match");
});

test("view_image knows pictures by their bytes and shows them", async () => {
  const png = Buffer.from(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
    "base64",
  );
  const webp = Buffer.from("RIFF\x04\0\0\0WEBPxxxx", "latin1");
  await using fixture = await open({
    "a.txt": png,
    "b.png": "not a picture",
    "c.webp": webp,
    "d.gif": "GIF89a....",
    "e.jpg": new Uint8Array([0xff, 0xd8, 0xff, 0xe0]),
    "huge.png": Buffer.concat([png, Buffer.alloc(4_000_000)]),
  });
  const shown = await fixture.call("view_image", { path: "a.txt" });
  expect(shown).toMatchObject({
    kind: "ok",
    item: { type: "imageView", path: join(fixture.workspace, "a.txt"), status: "completed" },
  });
  expect(shown.output).toEqual([{ type: "image", mediaType: "image/png", base64: png.toString("base64") }]);
  expect(textOf(await fixture.call("view_image", { path: "c.webp" }))).toBe("<image/webp>");
  expect(textOf(await fixture.call("view_image", { path: "d.gif" }))).toBe("<image/gif>");
  expect(textOf(await fixture.call("view_image", { path: "e.jpg" }))).toBe("<image/jpeg>");
  expect(await fixture.call("view_image", { path: "b.png" })).toMatchObject({
    kind: "failed",
    item: { status: "failed" },
  });
  expect(textOf(await fixture.call("view_image", { path: "huge.png" }))).toContain("the limit is");
});

test("a plan is shown as an item and changes nothing", async () => {
  await using fixture = await open();
  const outcome = await fixture.call("update_plan", {
    explanation: "so far",
    plan: [
      { step: "look", status: "completed" },
      { step: "fix", status: "in_progress" },
    ],
  });
  expect(outcome).toMatchObject({
    kind: "ok",
    item: {
      type: "plan",
      status: "completed",
      explanation: "so far",
      steps: [
        { text: "look", status: "completed" },
        { text: "fix", status: "inProgress" },
      ],
    },
  });
  expect(fixture.started[0]?.intent.isReadOnly).toBe(true);
});

test("a patch adds, updates, moves and deletes, and reports each change", async () => {
  await using fixture = await openFixture({
    sandbox: "none",
    files: { "a.txt": "1\n2\n3\n", "old.txt": "x\n", "gone.txt": "g\n" },
  });
  const outcome = await fixture.call(
    "apply_patch",
    `*** Begin Patch
*** Update File: a.txt
 1
-2
+two
*** Update File: old.txt
*** Move to: sub/new.txt
-x
+y
*** Delete File: gone.txt
*** Add File: sub/added.txt
+z
*** End Patch`,
  );
  const at = (name: string): string => join(fixture.workspace, name);
  expect(outcome.item).toMatchObject({
    status: "completed",
    changes: [
      { path: at("a.txt"), kind: "update", diff: "@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n" },
      { path: at("old.txt"), kind: "update", movedTo: at("sub/new.txt"), diff: "@@ -1 +1 @@\n-x\n+y\n" },
      { path: at("gone.txt"), kind: "delete", diff: "@@ -1 +0,0 @@\n-g\n" },
      { path: at("sub/added.txt"), kind: "add" },
    ],
  });
  expect(textOf(outcome)).toContain("M old.txt -> sub/new.txt");
  expect(await readFile(at("a.txt"), "utf8")).toBe("1\ntwo\n3\n");
  expect(await readFile(at("sub/new.txt"), "utf8")).toBe("y\n");
  expect(existsSync(at("old.txt"))).toBe(false);
  expect(existsSync(at("gone.txt"))).toBe(false);
});

test("a patch of which one hunk does not fit changes nothing at all", async () => {
  await using fixture = await openFixture({ sandbox: "none", files: { "a.txt": "1\n", "b.txt": "1\n" } });
  for (const [rest, message] of [
    ["*** Update File: b.txt\n-not there\n+x", "not found"],
    ["*** Delete File: missing.txt", "does not exist"],
    ["*** Add File: b.txt\n+x", "exists already"],
    ["*** Update File: b.txt\n*** Move to: a.txt\n-1\n+2", "exists already"],
  ] as const) {
    const outcome = await fixture.call(
      "apply_patch",
      `*** Begin Patch\n*** Update File: a.txt\n-1\n+2\n*** Add File: new.txt\n+n\n${rest}\n*** End Patch`,
    );
    expect(outcome).toMatchObject({ kind: "failed", item: { status: "failed" } });
    expect(textOf(outcome)).toContain(message);
  }
  expect(await readFile(join(fixture.workspace, "a.txt"), "utf8")).toBe("1\n");
  expect(await readFile(join(fixture.workspace, "b.txt"), "utf8")).toBe("1\n");
  expect(existsSync(join(fixture.workspace, "new.txt"))).toBe(false);
});

test("operations of one patch see each other", async () => {
  await using fixture = await openFixture({ sandbox: "none", files: { "a.txt": "1\n" } });
  const outcome = await fixture.call(
    "apply_patch",
    "*** Begin Patch\n*** Delete File: a.txt\n*** Add File: a.txt\n+2\n*** Update File: a.txt\n 2\n+3\n*** End Patch",
  );
  expect(outcome.item).toMatchObject({ changes: [{ kind: "update", diff: "@@ -1 +1,2 @@\n-1\n+2\n+3\n" }] });
  expect(await readFile(join(fixture.workspace, "a.txt"), "utf8")).toBe("2\n3\n");
});

test("a text that is not a patch is sent back with the line that is wrong", async () => {
  await using fixture = await openFixture({ sandbox: "none" });
  const outcome = await fixture.call("apply_patch", "*** Begin Patch\n*** Update File: a\nhello\n*** End Patch");
  expect(outcome).toMatchObject({ kind: "failed", isStarted: false, failure: { code: "tool.invalid-arguments" } });
  expect(textOf(outcome)).toContain("line 3");
});

test("a changed file keeps its mode", async () => {
  await using fixture = await openFixture({ sandbox: "none" });
  const path = join(fixture.workspace, "run.sh");
  await writeFile(path, "#!/bin/sh\necho 1\n", { mode: 0o755 });
  await fixture.call("apply_patch", "*** Begin Patch\n*** Update File: run.sh\n-echo 1\n+echo 2\n*** End Patch");
  expect(await readFile(path, "utf8")).toContain("echo 2");
  expect((await stat(path)).mode & 0o777).toBe(0o755);
});

test("12.12: a redaction mark never takes the place of a secret in a file", async () => {
  const secret = `ghp_${"Q7x".repeat(12)}`;
  await using fixture = await open({
    ".env": `A=1\nTOKEN=${secret}\nB=2\n`,
    "about.md": "a mark looks like [redacted:jwt]\n",
  });
  const mark = "[redacted:github-token]";
  const env = join(fixture.workspace, ".env");
  const notFound = await fixture.call("edit", {
    file_path: ".env",
    old_string: `TOKEN=${mark}`,
    new_string: "TOKEN=x",
  });
  expect(notFound.kind).toBe("failed");
  expect(textOf(notFound)).toContain(`contains ${mark}, which stands for a secret that is not shown: the file has`);
  for (const refused of [
    await fixture.call("edit", { file_path: ".env", old_string: "B=2", new_string: `B=${mark}` }),
    await fixture.call("write", { file_path: ".env", content: `A=2\nTOKEN=${mark}\nB=2\n` }),
    await fixture.call("write", { file_path: "copy", content: `TOKEN=${mark}\n` }),
  ]) {
    expect(refused.kind).toBe("failed");
    expect(textOf(refused)).toMatch(/was not changed: the new text contains \[redacted:github-token\].*Change only/s);
  }
  expect(await readFile(env, "utf8")).toContain(secret);
  expect(existsSync(join(fixture.workspace, "copy"))).toBe(false);
  await fixture.call("edit", { file_path: ".env", old_string: "A=1", new_string: "A=3" });
  expect(await readFile(env, "utf8")).toBe(`A=3\nTOKEN=${secret}\nB=2\n`);
  // Where the file itself speaks of marks they are text like any other.
  await fixture.call("edit", {
    file_path: "about.md",
    old_string: "like [redacted:jwt]",
    new_string: "so: [redacted:jwt]",
  });
  expect(await readFile(join(fixture.workspace, "about.md"), "utf8")).toBe("a mark looks so: [redacted:jwt]\n");
});
