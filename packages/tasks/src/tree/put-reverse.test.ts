/** 13: a put that fails is taken back step by step, and what others did meanwhile stays theirs. */
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { expect, test } from "vitest";
import { differences, entriesOf } from "../../test/random-trees.ts";
import { TreeFixture } from "../../test/tree-fixture.ts";
import { FolderCursor } from "./folder-cursor.ts";
import { Reverse } from "./put-reverse.ts";

/** As a put does it: what is there goes aside, something new comes in its place, a folder is made, another one removed. */
function begin(fixture: TreeFixture): Reverse {
  const reverse = new Reverse();
  using cursor = new FolderCursor(fixture.workspace);
  for (const folder of ["", "src", "empty"]) reverse.touch(cursor, folder);
  chmodSync(fixture.at("src"), 0o755);
  renameSync(fixture.at("src/a.js"), fixture.at("src/.aside"));
  reverse.add({ did: "moved", path: "src/a.js", aside: "src/.aside" });
  fixture.write("src/a.js", "new");
  reverse.add({ did: "placed", path: "src/a.js", stat: lstatSync(fixture.at("src/a.js"), { bigint: true }) });
  rmdirSync(fixture.at("empty"));
  reverse.add({ did: "removed", path: "empty" });
  mkdirSync(fixture.at("made"));
  reverse.add({ did: "made", path: "made" });
  return reverse;
}

function open(): TreeFixture {
  const fixture = new TreeFixture({ "src/a.js": "old" });
  mkdirSync(fixture.at("empty"));
  chmodSync(fixture.at("src"), 0o555);
  for (const name of ["src/a.js", "src", "empty", "."]) utimesSync(fixture.at(name), 1_600_000_000, 1_600_000_000);
  return fixture;
}

test("13: all of it is undone in reverse, with modes and times of folders", async () => {
  await using fixture = open();
  const before = entriesOf(fixture.workspace);
  begin(fixture).run(fixture.workspace);
  expect(differences(entriesOf(fixture.workspace), before, { withTimes: true })).toEqual([]);
  expect(statSync(fixture.workspace).mtimeMs).toBe(1_600_000_000_000);
});

test("13: what somebody wrote over a put file stays, and what was there is still beside it", async () => {
  await using fixture = open();
  const reverse = begin(fixture);
  rmSync(fixture.at("src/a.js"));
  fixture.write("src/a.js", "by its user");
  reverse.run(fixture.workspace);
  expect(readFileSync(fixture.at("src/a.js"), "utf8")).toBe("by its user");
  expect(readFileSync(fixture.at("src/.aside"), "utf8"), "nothing is lost").toBe("old");
});

test("13: a file that somebody has removed again is put back, another name of it is no change", async () => {
  await using fixture = open();
  const reverse = begin(fixture);
  linkSync(fixture.at("src/a.js"), fixture.at("other"));
  rmSync(fixture.at("src/a.js"));
  reverse.run(fixture.workspace);
  expect(readFileSync(fixture.at("src/a.js"), "utf8")).toBe("old");
  expect(readFileSync(fixture.at("other"), "utf8")).toBe("new");
});

test("13: a folder that was made stays for what somebody has put into it", async () => {
  await using fixture = open();
  const reverse = begin(fixture);
  fixture.write("made/mine", "mine");
  reverse.run(fixture.workspace);
  expect(readdirSync(fixture.at("made"))).toEqual(["mine"]);
  expect(readFileSync(fixture.at("src/a.js"), "utf8")).toBe("old");
});

test("13: what cannot be taken back throws, so that the intent stays for the next", async () => {
  await using fixture = open();
  const reverse = begin(fixture);
  rmSync(fixture.at("src/.aside"));
  expect(() => reverse.run(fixture.workspace)).toThrow(/ENOENT/);
});
