/** Durations: `90s`, `5m`, `1h30m`, `1d`. A number without a unit is not one. */

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 7 * 86_400_000,
};

const PART = String.raw`(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)`;
const WHOLE = new RegExp(String.raw`^\s*${PART}(?:\s*${PART})*\s*$`);

/** For JSON Schema. */
export const DURATION_PATTERN = String.raw`^\s*(\d+(\.\d+)?\s*(ms|s|min|m|h|d|w)\s*)+$`;

/** Whole milliseconds; undefined: not a duration. */
export function parseDuration(text: string): number | undefined {
  if (text.length > 64 || !WHOLE.test(text)) return undefined;
  let sum = 0;
  for (const [, count, unit = ""] of text.matchAll(new RegExp(PART, "g"))) sum += Number(count) * (UNITS_MS[unit] ?? 0);
  return Math.round(sum);
}

export function formatDuration(ms: number): string {
  for (const [unit, size] of [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1000],
  ] as const)
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  return `${ms}ms`;
}
