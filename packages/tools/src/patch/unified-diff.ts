/**
 * Unified diff of two texts. The search for a short script is bounded: past the bound the changed middle is shown as
 * one block, which is longer but still true.
 */
const CONTEXT = 3;
/** Edit distance up to which the shortest script is searched; memory grows with its square. */
const MAX_DISTANCE = 600;
const MAX_DIFF_BYTES = 64 * 1024;

export interface CappedDiff {
  readonly diff: string;
  readonly diffTruncatedBytes?: number;
}

/** Without file headers: the item that carries the diff names the file. */
export function unifiedDiff(before: string, after: string): CappedDiff {
  return capDiff(render(diffLines(splitLines(before), splitLines(after))));
}

/** Cut at a line, so that what is shown stays a diff. */
export function capDiff(diff: string): CappedDiff {
  const size = Buffer.byteLength(diff);
  if (size <= MAX_DIFF_BYTES) return { diff };
  const head = Buffer.from(diff).subarray(0, MAX_DIFF_BYTES).toString("utf8");
  const shown = head.slice(0, head.lastIndexOf("\n") + 1);
  return { diff: shown, diffTruncatedBytes: size - Buffer.byteLength(shown) };
}

interface DiffLine {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

const NO_NEWLINE = "\n\\ No newline at end of file";

/** Each line keeps the mark of a missing newline as part of its text, so that adding one is a change. */
function splitLines(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  const last = lines.pop() ?? "";
  if (last !== "") lines.push(last + NO_NEWLINE);
  return lines;
}

function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  ) {
    tail += 1;
  }
  const oldMiddle = before.slice(head, before.length - tail);
  const newMiddle = after.slice(head, after.length - tail);
  return [
    ...signed(" ", before.slice(0, head)),
    ...(shortestScript(oldMiddle, newMiddle) ?? [...signed("-", oldMiddle), ...signed("+", newMiddle)]),
    ...signed(" ", before.slice(before.length - tail)),
  ];
}

function signed(sign: DiffLine["sign"], lines: readonly string[]): DiffLine[] {
  return lines.map((text) => ({ sign, text }));
}

/** Myers' greedy search, forward, keeping the frontier of each step to walk back. */
function shortestScript(before: readonly string[], after: readonly string[]): DiffLine[] | undefined {
  const bound = Math.min(MAX_DISTANCE, before.length + after.length);
  const offset = bound + 1;
  const reach = new Int32Array(2 * bound + 3);
  const steps: Int32Array[] = [];
  for (let distance = 0; distance <= bound; distance += 1) {
    steps.push(reach.slice(offset - distance - 1, offset + distance + 2));
    for (let diagonal = -distance; diagonal <= distance; diagonal += 2) {
      const down = reach[offset + diagonal + 1] ?? 0;
      const right = (reach[offset + diagonal - 1] ?? 0) + 1;
      let x = diagonal === -distance || (diagonal !== distance && right <= down) ? down : right;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x += 1;
      reach[offset + diagonal] = x;
      if (x >= before.length && x - diagonal >= after.length) return walkBack(before, after, steps);
    }
  }
  return undefined;
}

function walkBack(before: readonly string[], after: readonly string[], steps: readonly Int32Array[]): DiffLine[] {
  const script: DiffLine[] = [];
  let x = before.length;
  let y = after.length;
  for (let distance = steps.length - 1; distance > 0; distance -= 1) {
    // `steps[distance]` holds diagonals -distance-1 … distance+1 as they were before that step.
    const at = (diagonal: number): number => steps[distance]?.[diagonal + distance + 1] ?? 0;
    const diagonal = x - y;
    const isDown = diagonal === -distance || (diagonal !== distance && at(diagonal - 1) + 1 <= at(diagonal + 1));
    const previousX = isDown ? at(diagonal + 1) : at(diagonal - 1);
    const previousY = previousX - (isDown ? diagonal + 1 : diagonal - 1);
    const afterMoveX = isDown ? previousX : previousX + 1;
    for (; x > afterMoveX; x -= 1, y -= 1) script.push({ sign: " ", text: before[x - 1] ?? "" });
    if (isDown) script.push({ sign: "+", text: after[previousY] ?? "" });
    else script.push({ sign: "-", text: before[previousX] ?? "" });
    x = previousX;
    y = previousY;
  }
  for (; x > 0; x -= 1) script.push({ sign: " ", text: before[x - 1] ?? "" });
  return script.reverse();
}

function render(lines: readonly DiffLine[]): string {
  let text = "";
  let oldNumber = 1;
  let newNumber = 1;
  let index = 0;
  while (index < lines.length) {
    let change = index;
    while (lines[change]?.sign === " ") change += 1;
    if (change === lines.length) break;
    const start = Math.max(index, change - CONTEXT);
    oldNumber += start - index;
    newNumber += start - index;
    const end = hunkEnd(lines, change);
    const hunk = lines.slice(start, end);
    const oldCount = hunk.filter((line) => line.sign !== "+").length;
    const newCount = hunk.filter((line) => line.sign !== "-").length;
    text += `@@ -${range(oldNumber, oldCount)} +${range(newNumber, newCount)} @@\n`;
    for (const line of hunk) text += `${line.sign}${line.text}\n`;
    oldNumber += oldCount;
    newNumber += newCount;
    index = end;
  }
  return text;
}

/** A hunk continues while the next change is near enough to share context. */
function hunkEnd(lines: readonly DiffLine[], change: number): number {
  let last = change;
  for (let at = change; at < lines.length && at - last <= 2 * CONTEXT; at += 1) {
    if (lines[at]?.sign !== " ") last = at;
  }
  return Math.min(lines.length, last + CONTEXT + 1);
}

function range(start: number, count: number): string {
  if (count === 1) return String(start);
  return `${count === 0 ? start - 1 : start},${count}`;
}
