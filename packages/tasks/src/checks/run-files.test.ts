import { expect, test } from "vitest";
import { openWorkPlace } from "../../test/work-place.ts";
import { filesOfCommand, manifestsOf } from "./run-files.ts";
import { openWorkspace } from "./workspace.ts";

const files = {
  "check.sh": "",
  "lib/check.sh": "",
  "lib/package.json": JSON.stringify({ scripts: { pretest: "node lib-setup.js", test: "node lib-test.js" } }),
  "lib/lib-test.js": "",
  "lib/lib-setup.js": "",
  "package.json": JSON.stringify({ scripts: { verify: "npm run deep", deep: "sh check.sh", other: "sh other.sh" } }),
  "other.sh": "",
  "my_pkg/check.py": "",
  Makefile: "",
  "out/report.txt": "",
};

test.each<[string | string[], string, string[], string[]]>([
  [["sh", "check.sh"], ".", ["check.sh"], []],
  ["sh ./check.sh && true", ".", ["check.sh"], []],
  [["sh", "-c", "sh check.sh"], ".", ["check.sh"], []],
  [["sh", "check.sh"], "lib", ["lib/check.sh"], []],
  ["cd lib && sh check.sh", ".", ["check.sh", "lib/check.sh"], []],
  [["npm", "run", "verify"], ".", ["check.sh"], ["package.json"]],
  [["npm", "test", "-w", "lib"], ".", ["lib/lib-setup.js", "lib/lib-test.js"], ["lib/package.json", "package.json"]],
  [["npm", "test"], "lib", ["lib/lib-setup.js", "lib/lib-test.js"], ["lib/package.json"]],
  [["python", "-m", "my_pkg.check"], ".", ["my_pkg/check.py"], []],
  [["make", "check"], ".", ["Makefile"], []],
  [["tool", "--config=other.sh"], ".", ["other.sh"], []],
  [["cat", "../check.sh", "/etc/passwd", "no-such-file"], ".", [], []],
  [["true"], ".", [], []],
])("60: %j in %s runs from %j and the scripts of %j", async (run, cwd, expected, manifests) => {
  await using place = await openWorkPlace({ files });
  const workspace = await openWorkspace(place.workspace, { masked: [], signal: place.place.signal });
  expect((await filesOfCommand({ run, cwd }, workspace)).toSorted()).toEqual(expected);
  expect((await manifestsOf({ run, cwd }, workspace)).toSorted()).toEqual(manifests);
});
