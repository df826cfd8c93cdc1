import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkManifests } from "./manifests.ts";
import { plantTree } from "./planted-tree.ts";

const manifest = (dependencies: Record<string, string>): string => JSON.stringify({ name: "x", dependencies });

test("a range, two versions of one dependency and a registry host are found", () => {
  using tree = plantTree({
    "package.json": manifest({ a: "^1.0.0", b: "1.0.0" }),
    "packages/x/package.json": manifest({ b: "1.0.1" }),
    "package-lock.json": `{\n"resolved": "https://registry.example.org/a.tgz"\n}`,
  });
  expect(checkManifests(tree.root)).toEqual({
    examined: 2,
    findings: [
      { at: "package.json", text: 'a is "^1.0.0", which is not one exact version' },
      { at: "packages/x/package.json", text: "b is 1.0.1 here and 1.0.0 in package.json" },
      { at: "package-lock.json:2", text: "names a registry host" },
    ],
  });
});

test("a missing lockfile is found", () => {
  using tree = plantTree({ "package.json": manifest({ a: "1.0.0" }) });
  expect(checkManifests(tree.root).findings).toEqual([{ at: "package-lock.json", text: "is missing" }]);
});

test("this repository is pinned", () => {
  const result = checkManifests(fileURLToPath(new URL("..", import.meta.url)));
  expect(result.findings).toEqual([]);
  expect(result.examined).toBeGreaterThan(5);
});
