import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { readSpec } from "../spec/read-spec.ts";
import { lookUp, parsePath } from "./document-path.ts";

const document = { a: { b: [{ c: 1 }], "odd key": 2, "x-y": 3 }, "": 4, über: 5, list: [[6]] };

test.each([
  ["a.b[0].c", 1],
  ['a["odd key"]', 2],
  ["a.x-y", 3],
  ['[""]', 4],
  ["über", 5],
  ["list[0][0]", 6],
  ["", document],
])("%s is there", (path, value) => {
  expect(lookUp(document, path)).toEqual({ isThere: true, value });
});

test.each(["b", "a.b[1]", "a.b.c", "a[0]", "list.length", "a.b[0].c.d", "toString", "a.__proto__"])(
  "nothing is at %s",
  (path) => {
    expect(lookUp(document, path)).toEqual({ isThere: false });
  },
);

test.each([".a", "a.", "a..b", "a.*", "$.a[*]", "a[-1]", "a[0", "a[0]b", "a b", "a['b']", '["\\x"]', "/a/b", "a[1e3]"])(
  "%s is no path, and a spec with it is refused",
  (path) => {
    expect(() => parsePath(path)).toThrow(/is not a path in a document/);
    const check = JSON.stringify({ kind: "json", path: "x.json", at: path, exists: true });
    const text = `name: x\nworkspace: .\ngoal: y\nchecks: [${check}]\n`;
    expect(() => readSpec({ file: "x.yaml", text, folder: tmpdir() })).toThrow(/is not a path in a document/);
  },
);
