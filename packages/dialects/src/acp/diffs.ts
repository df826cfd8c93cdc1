/** Changes of files as editors draw them: text before and after, one pair for each hunk. */
import type { FileChangeEntry } from "@heddle/protocol";
import type { AcpToolContent } from "./shapes.ts";

const NO_NEWLINE = "\\";

export function diffContent({ path, kind, diff, movedTo }: FileChangeEntry): readonly AcpToolContent[] {
  const at = movedTo ?? path;
  const pairs = hunksOf(diff).map((lines) => ({ before: textOf(lines, "-"), after: textOf(lines, "+") }));
  if (pairs.length === 0) {
    // A patch that is only asked about may not say how the file looks.
    return kind === "delete" ? [{ type: "diff", path: at, oldText: "", newText: "" }] : [];
  }
  return pairs.map(({ before, after }) => ({
    type: "diff",
    path: at,
    oldText: kind === "add" ? null : before,
    newText: kind === "delete" ? "" : after,
  }));
}

/** The first line that changes, where the diff says it. */
export function changedLine({ diff, kind }: FileChangeEntry): number | undefined {
  const [, line] = /^@@ -\d+(?:,\d+)? \+(\d+)/m.exec(diff) ?? [];
  return line === undefined || kind === "delete" ? undefined : Number(line);
}

/** Lines without those that only say where they are. */
function hunksOf(diff: string): readonly (readonly string[])[] {
  const hunks: string[][] = [];
  let current: string[] | undefined;
  for (const line of diff.split("\n")) {
    if (line.startsWith("@@")) hunks.push((current = []));
    else if (line.startsWith("--- ") || line.startsWith("+++ ")) {
      // Of a file; inside a hunk it is a line that is removed or added.
      if (current !== undefined) current.push(line);
    } else if (line !== "") {
      if (current === undefined) hunks.push((current = []));
      current.push(line);
    }
  }
  return hunks.filter((lines) => lines.length > 0);
}

function textOf(lines: readonly string[], sign: "+" | "-"): string {
  const kept: string[] = [];
  let hasEnd = true;
  for (const [index, line] of lines.entries()) {
    const mark = line[0];
    if (mark === sign || mark === " ") kept.push(line.slice(1));
    const isOfThisSide = lines[index - 1]?.[0] === sign || lines[index - 1]?.[0] === " ";
    if (mark === NO_NEWLINE && isOfThisSide) hasEnd = false;
  }
  return kept.length === 0 ? "" : kept.join("\n") + (hasEnd ? "\n" : "");
}
