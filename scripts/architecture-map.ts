/**
 * The map in ARCHITECTURE.md is the tree: every folder of a package's source has a row under "The rooms", and no row names
 * another. The paths under "The path of …" are as short as they were meant to be: each numbered step is one hop.
 * Usage: node scripts/architecture-map.ts [root]
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { runCheck, type CheckResult, type Finding } from "./finding.ts";

const MAP = "ARCHITECTURE.md";
/** The heading, the line before the list, and how many steps the list may have. */
const PATHS = [
  ['The path of `heddle exec "…"`', "Down:", 10],
  ['The path of `heddle exec "…"`', "Back:", 6],
  ["The path of a turn over HTTP", "Down:", 8],
  ["The path of a task", "Down, before its turn:", 14],
] as const;

export function checkArchitectureMap(root: string): CheckResult {
  const map = readFileSync(join(root, MAP), "utf8");
  const rooms = roomsOf(root);
  const named = new Set(roomsNamed(section(map, "The rooms")));
  const findings: Finding[] = [
    ...rooms.filter((room) => !named.has(room)).map((room) => ({ at: MAP, text: `"The rooms" does not name ${room}` })),
    ...[...named]
      .filter((room) => !rooms.includes(room))
      .map((room) => ({ at: MAP, text: `"The rooms" names ${room}, which is no folder with source` })),
    ...PATHS.flatMap(([heading, list, most]) => longPath(map, { heading, list, most })),
  ];
  return { examined: rooms.length + PATHS.length, findings };
}

/** One line per package: its `src/`, then the folders in it. */
function roomsNamed(text: string): readonly string[] {
  return text.split("\n").flatMap((line) => {
    const [, source] = /^- `((?:packages|apps)\/[^/`]+\/src\/)`:/.exec(line) ?? [];
    if (source === undefined) return [];
    return [...line.matchAll(/`([^/`]+\/)`/g)].map(([, folder]) => `${source}${folder}`);
  });
}

/** Folders right below `src` that hold source themselves or further down. */
function roomsOf(root: string): readonly string[] {
  const files = globSync(["packages/*/src/*/**/*.ts", "apps/*/src/*/**/*.{ts,tsx}"], { cwd: root });
  return [...new Set(files.map((file) => `${dirname(file).split("/").slice(0, 4).join("/")}/`))].sort();
}

function longPath(
  map: string,
  { heading, list, most }: { heading: string; list: string; most: number },
): readonly Finding[] {
  const text = section(map, heading);
  const steps = /^(?:\d+\. .*\n?)+/.exec(text.slice(text.indexOf(`\n${list}\n`) + list.length + 2).trimStart())?.[0];
  if (!text.includes(`\n${list}\n`) || steps === undefined)
    return [{ at: MAP, text: `"${heading}" has no list after "${list}"` }];
  const count = steps.trimEnd().split("\n").length;
  return count <= most ? [] : [{ at: MAP, text: `"${heading}" takes ${count} steps (${list}); at most ${most}` }];
}

function section(map: string, heading: string): string {
  const start = map.indexOf(`\n## ${heading}`);
  if (start === -1) return "";
  const end = map.indexOf("\n## ", start + 1);
  return map.slice(start, end === -1 ? undefined : end);
}

if (import.meta.main) runCheck(checkArchitectureMap);
