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
import { TreePlace } from "../../test/tree-place.ts";
import { FolderCursor } from "./folder-cursor.ts";
import { Reverse } from "./put-reverse.ts";

/** As a put does it: what is there goes aside, something new comes in its place, a folder is made, another one removed. */
function begin(place: TreePlace): Reverse {
  const reverse = new Reverse();
  using cursor = new FolderCursor(place.workspace);
  for (const folder of ["", "src", "empty"]) reverse.touch(cursor, folder);
  chmodSync(place.at("src"), 0o755);
  renameSync(place.at("src/a.js"), place.at("src/.aside"));
  reverse.add({ did: "moved", path: "src/a.js", aside: "src/.aside" });
  place.write("src/a.js", "new");
  reverse.add({ did: "placed", path: "src/a.js", stat: lstatSync(place.at("src/a.js"), { bigint: true }) });
  rmdirSync(place.at("empty"));
  reverse.add({ did: "removed", path: "empty" });
  mkdirSync(place.at("made"));
  reverse.add({ did: "made", path: "made" });
  return reverse;
}

function open(): TreePlace {
  const place = new TreePlace({ "src/a.js": "old" });
  mkdirSync(place.at("empty"));
  chmodSync(place.at("src"), 0o555);
  for (const name of ["src/a.js", "src", "empty", "."]) utimesSync(place.at(name), 1_600_000_000, 1_600_000_000);
  return place;
}

test("13: all of it is undone in reverse, with modes and times of folders", async () => {
  await using place = open();
  const before = entriesOf(place.workspace);
  begin(place).run(place.workspace);
  expect(differences(entriesOf(place.workspace), before, { withTimes: true })).toEqual([]);
  expect(statSync(place.workspace).mtimeMs).toBe(1_600_000_000_000);
});

test("13: what somebody wrote over a put file stays, and what was there is still beside it", async () => {
  await using place = open();
  const reverse = begin(place);
  rmSync(place.at("src/a.js"));
  place.write("src/a.js", "by its user");
  reverse.run(place.workspace);
  expect(readFileSync(place.at("src/a.js"), "utf8")).toBe("by its user");
  expect(readFileSync(place.at("src/.aside"), "utf8"), "nothing is lost").toBe("old");
});

test("13: a file that somebody has removed again is put back, another name of it is no change", async () => {
  await using place = open();
  const reverse = begin(place);
  linkSync(place.at("src/a.js"), place.at("other"));
  rmSync(place.at("src/a.js"));
  reverse.run(place.workspace);
  expect(readFileSync(place.at("src/a.js"), "utf8")).toBe("old");
  expect(readFileSync(place.at("other"), "utf8")).toBe("new");
});

test("13: a folder that was made stays for what somebody has put into it", async () => {
  await using place = open();
  const reverse = begin(place);
  place.write("made/mine", "mine");
  reverse.run(place.workspace);
  expect(readdirSync(place.at("made"))).toEqual(["mine"]);
  expect(readFileSync(place.at("src/a.js"), "utf8")).toBe("old");
});

test("13: what cannot be taken back throws, so that the intent stays for the next", async () => {
  await using place = open();
  const reverse = begin(place);
  rmSync(place.at("src/.aside"));
  expect(() => reverse.run(place.workspace)).toThrow(/ENOENT/);
});
