/** Unified diffs as rows, with the numbers of both sides. What is no diff is shown as it is. */

export interface DiffRow {
  readonly sign: "+" | "-" | " " | "@";
  readonly before: number | undefined;
  readonly after: number | undefined;
  readonly text: string;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/;

export function diffRows(diff: string): readonly DiffRow[] {
  const rows: DiffRow[] = [];
  let before = 1;
  let after = 1;
  let isInHunk = false;
  for (const text of withoutEnd(diff).split("\n")) {
    const hunk = HUNK.exec(text);
    if (hunk !== null) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      if (isInHunk || before > 1)
        rows.push({ sign: "@", before: undefined, after: undefined, text: (hunk[3] ?? "").trim() });
      isInHunk = true;
      continue;
    }
    if (!isInHunk || text.startsWith("\\")) continue;
    const rest = text.slice(1);
    if (text.startsWith("+")) rows.push({ sign: "+", before: undefined, after: after++, text: rest });
    else if (text.startsWith("-")) rows.push({ sign: "-", before: before++, after: undefined, text: rest });
    else rows.push({ sign: " ", before: before++, after: after++, text: rest });
  }
  return rows;
}

export function countLines(diff: string): { readonly added: number; readonly removed: number } {
  let added = 0;
  let removed = 0;
  for (const { sign } of diffRows(diff)) {
    if (sign === "+") added += 1;
    else if (sign === "-") removed += 1;
  }
  return { added, removed };
}

function withoutEnd(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}
