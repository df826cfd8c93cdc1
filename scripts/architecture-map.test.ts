import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { checkArchitectureMap } from "./architecture-map.ts";
import { plantTree } from "./planted-tree.ts";

const steps = (count: number): string => Array.from({ length: count }, (_, index) => `${index + 1}. step\n`).join("");

function findingsIn(rooms: string, { http = 4 } = {}): string[] {
  using tree = plantTree({
    "packages/agent/src/turns/turn.ts": "",
    "packages/agent/src/turns/deep/deeper.ts": "",
    "packages/agent/src/open.ts": "",
    "ARCHITECTURE.md": [
      "# Architecture",
      `## The rooms\n\n${rooms}\n`,
      `## The path of \`heddle exec "…"\`\n\nDown:\n\n${steps(10)}\nBack:\n\n${steps(6)}`,
      `## The path of a turn over HTTP\n\nDown:\n\n${steps(http)}`,
      `## The path of a task\n\nDown, before its turn:\n\n${steps(14)}`,
    ].join("\n"),
  });
  return checkArchitectureMap(tree.root).findings.map(({ text }) => text);
}

test("a map that names every room, with paths as short as they may be, passes", () => {
  expect(findingsIn("- `packages/agent/src/`: `turns/` one turn")).toEqual([]);
});

test.each([
  ["- `packages/agent/src/`:", '"The rooms" does not name packages/agent/src/turns/'],
  [
    "- `packages/agent/src/`: `turns/` x; `gone/` y",
    '"The rooms" names packages/agent/src/gone/, which is no folder with source',
  ],
])("%s is found", (rooms, text) => {
  expect(findingsIn(rooms)).toEqual([text]);
});

test("a path that has grown is found", () => {
  expect(findingsIn("- `packages/agent/src/`: `turns/` one turn", { http: 9 })).toEqual([
    '"The path of a turn over HTTP" takes 9 steps (Down:); at most 8',
  ]);
});

test("the map of this repository is its tree", () => {
  expect(checkArchitectureMap(fileURLToPath(new URL("..", import.meta.url))).findings).toEqual([]);
});
