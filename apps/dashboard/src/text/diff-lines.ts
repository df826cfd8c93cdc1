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

/** Of a changed line: from where to where it differs from the one it replaced. */
export type Mark = readonly [from: number, to: number];

/** Longer lines are not compared by words. */
const MOST_CHARS = 2_000;

/** What differs within lines that were replaced one by one, by the index of the row: words between those that both have. */
export function changedWords(rows: readonly DiffRow[]): ReadonlyMap<number, Mark> {
  const marks = new Map<number, Mark>();
  for (let at = 0; at < rows.length; at += 1) {
    const removed = run(rows, at, "-");
    const added = run(rows, at + removed, "+");
    // As many out as in: each took the place of one. Otherwise nobody knows which.
    for (let one = 0; removed === added && one < removed; one += 1) {
      const [before, after] = [rows[at + one]?.text ?? "", rows[at + removed + one]?.text ?? ""];
      const found = before.length > MOST_CHARS || after.length > MOST_CHARS ? undefined : differing(before, after);
      if (found === undefined) continue;
      marks.set(at + one, found[0]);
      marks.set(at + removed + one, found[1]);
    }
    if (removed + added > 0) at += removed + added - 1;
  }
  return marks;
}

function run(rows: readonly DiffRow[], from: number, sign: DiffRow["sign"]): number {
  let to = from;
  while (rows[to]?.sign === sign) to += 1;
  return to - from;
}

/** undefined: they have nothing in common that would be worth telling apart. */
function differing(before: string, after: string): readonly [Mark, Mark] | undefined {
  const [old, fresh] = [wordsOf(before), wordsOf(after)];
  let head = 0;
  while (head < Math.min(old.length, fresh.length) && old[head] === fresh[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, fresh.length) - head;
  while (tail < most && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  const common = [...old.slice(0, head), ...old.slice(old.length - tail)].join("").trim();
  if (common === "") return undefined;
  const span = (words: readonly string[], whole: string): Mark => [
    words.slice(0, head).join("").length,
    whole.length - words.slice(words.length - tail).join("").length,
  ];
  return [span(old, before), span(fresh, after)];
}

function wordsOf(text: string): readonly string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}
