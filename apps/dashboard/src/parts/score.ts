/** What was probably meant: every letter in order, the better the closer they stand and the nearer to the beginning of words. */
export function scored<T>(entries: readonly T[], text: string, nameOf: (entry: T) => string): readonly T[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return entries;
  return entries
    .map((entry, index) => ({ entry, index, score: scoreOf(nameOf(entry).toLowerCase(), wanted) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || a.index - b.index)
    .map(({ entry }) => entry);
}

function scoreOf(name: string, wanted: string): number {
  const whole = name.indexOf(wanted);
  if (whole >= 0) return 1000 - whole + (whole === 0 || name[whole - 1] === " " ? 500 : 0);
  let at = -1;
  let score = 1;
  for (const letter of wanted) {
    if (letter === " ") continue;
    const next = name.indexOf(letter, at + 1);
    if (next < 0) return 0;
    score += next === at + 1 ? 5 : name[next - 1] === " " ? 3 : 0;
    at = next;
  }
  return score;
}
