import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { holdFile } from "./held-file.ts";
import { holdFolder } from "./held-folder.ts";

/** A workspace that agents may write, and a folder outside that they may not. */
function makeFixture() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "heddle-held-")));
  const workspace = join(root, "workspace");
  const outside = join(root, "outside");
  for (const folder of [workspace, outside]) mkdirSync(folder);
  writeFileSync(join(outside, "keys"), "mine");
  const keys = (): string => readFileSync(join(outside, "keys"), "utf8");
  return { root, workspace, outside, keys, [Symbol.dispose]: () => rmSync(root, { recursive: true }) };
}

test("12.1: a link or a hard link that takes the name of a file is replaced, never written through", async () => {
  using fixture = makeFixture();
  const { workspace, outside } = fixture;
  using soft = holdFile(join(workspace, "soft"), { roots: [workspace] });
  using hard = holdFile(join(workspace, "hard"), { roots: [workspace] });
  symlinkSync(join(outside, "keys"), join(workspace, "soft"));
  linkSync(join(outside, "keys"), join(workspace, "hard"));
  for (const held of [soft, hard]) await held.write("answer");
  expect(readFileSync(join(workspace, "soft"), "utf8") + readFileSync(join(workspace, "hard"), "utf8")).toBe(
    "answeranswer",
  );
  expect(fixture.keys()).toBe("mine");
  // Planted before: the same.
  symlinkSync(join(outside, "keys"), join(workspace, "before"));
  using before = holdFile(join(workspace, "before"), { roots: [workspace] });
  await before.write("answer");
  expect([fixture.keys(), readdirSync(workspace).toSorted()]).toEqual(["mine", ["before", "hard", "soft"]]);
});

test("12.1: a link in the user's own folders goes on working, for the folder and for the file", async () => {
  using fixture = makeFixture();
  const { root, workspace, outside } = fixture;
  symlinkSync("outside", join(root, "to-folder"));
  symlinkSync(join(outside, "keys"), join(root, "to-file"));
  for (const name of ["to-folder/new", "to-file"]) {
    using held = holdFile(join(root, name), { roots: [workspace] });
    await held.write(name);
  }
  expect([readFileSync(join(outside, "new"), "utf8"), fixture.keys()]).toEqual(["to-folder/new", "to-file"]);
});

test("12.1: a link where agents may write leads nowhere else, as a folder on the way or above it", () => {
  using fixture = makeFixture();
  const { workspace, outside } = fixture;
  mkdirSync(join(outside, "deep"));
  mkdirSync(join(workspace, "real"));
  symlinkSync(outside, join(workspace, "out"));
  symlinkSync("real", join(workspace, "inner"));
  for (const name of ["out/x", "out/deep/x"]) {
    expect(() => holdFile(join(workspace, name), { roots: [workspace] })).toThrow(/out is a link .* leads out of it/);
  }
  using inner = holdFolder(join(workspace, "inner"));
  inner.refuseLinksOf([workspace]);
  expect(inner.path).toBe(join(workspace, "real"));
  expect(() => holdFolder(join(workspace, "out"), { refusesLinks: true })).toThrow(/out is a link/);
});

test("12.1: a folder that was removed, moved or replaced meanwhile is said, and nothing is written elsewhere", () => {
  using fixture = makeFixture();
  const { workspace, outside } = fixture;
  const attempts = [
    (folder: string) => rmSync(folder, { recursive: true }),
    (folder: string) => renameSync(folder, `${folder}-moved`),
    (folder: string) => {
      renameSync(folder, `${folder}-away`);
      symlinkSync(outside, folder);
    },
  ];
  for (const [index, attempt] of attempts.entries()) {
    const folder = join(workspace, String(index));
    mkdirSync(folder);
    using held = holdFolder(folder);
    attempt(folder);
    expect(() => held.write("x", "answer")).toThrow(/was (removed or moved|replaced) while it was in use/);
  }
  expect(readdirSync(outside)).toEqual(["keys"]);
});

test("a file is the old or the new one, keeps its mode, and leaves nothing when it is not finished", () => {
  using fixture = makeFixture();
  const { workspace } = fixture;
  writeFileSync(join(workspace, "a"), "old", { mode: 0o640 });
  using held = holdFolder(workspace);
  {
    using draft = held.draft("a");
    draft.append("half");
  }
  expect([readFileSync(join(workspace, "a"), "utf8"), readdirSync(workspace)]).toEqual(["old", ["a"]]);
  held.write("a", "new", { keepsMode: true });
  expect([readFileSync(join(workspace, "a"), "utf8"), statSync(join(workspace, "a")).mode & 0o777]).toEqual([
    "new",
    0o640,
  ]);
});
