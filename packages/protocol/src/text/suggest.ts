/** "Did you mean": the known word nearest to a mistyped one, or nothing when none is near: `limit` counts letters. */
export function nearest(
  word: string,
  known: readonly string[],
  limit = Math.max(1, Math.floor(word.length / 3)),
): string | undefined {
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of known) {
    // Longer or shorter by that much is as far away at least; a word of a stranger may be a megabyte.
    if (Math.abs(word.length - candidate.length) >= bestDistance) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Ready to append to a sentence: `; did you mean "x"?` or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const candidate = nearest(word, known);
  return candidate === undefined ? "" : `; did you mean "${candidate}"?`;
}

/** Letters changed, added, dropped, or two neighbours swapped: each counts one. */
function editDistance(a: string, b: string): number {
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1);
      next.push(least);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
