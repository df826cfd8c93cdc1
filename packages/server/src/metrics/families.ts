/**
 * Counters and histograms in the text format of Prometheus, without a library. What varies is a label only where it has
 * few values; beyond a number of series everything more is counted under `other`, so that no client or model can fill the
 * memory.
 */
export type Labels = Readonly<Record<string, string>>;

export interface Family {
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge" | "histogram";
  /** `name{labels} value`, without a line break. */
  lines(): readonly string[];
}

export interface Counter extends Family {
  add(labels: Labels, by?: number): void;
}

export interface Histogram extends Family {
  observe(labels: Labels, value: number): void;
}

export const MAX_SERIES = 100;
const OTHER = "other";

export function counter(name: string, help: string): Counter {
  const series = seriesOf(() => ({ value: 0 }));
  return {
    name,
    help,
    kind: "counter",
    add(labels, by = 1) {
      series.of(labels).value += by;
    },
    lines: () => series.all().map(([labels, { value }]) => sample(name, labels, value)),
  };
}

export function histogram(name: string, help: string, bounds: readonly number[]): Histogram {
  const series = seriesOf(() => ({ counts: bounds.map(() => 0), count: 0, sum: 0 }));
  return {
    name,
    help,
    kind: "histogram",
    observe(labels, value) {
      const found = series.of(labels);
      const bucket = bounds.findIndex((bound) => value <= bound);
      if (bucket >= 0) found.counts[bucket] = (found.counts[bucket] ?? 0) + 1;
      found.count += 1;
      found.sum += value;
    },
    lines: () =>
      series.all().flatMap(([labels, { counts, count, sum }]) => {
        let below = 0;
        const buckets = bounds.map((bound, index) => {
          below += counts[index] ?? 0;
          return sample(`${name}_bucket`, { ...labels, le: String(bound) }, below);
        });
        return [
          ...buckets,
          sample(`${name}_bucket`, { ...labels, le: "+Inf" }, count),
          sample(`${name}_sum`, labels, sum),
          sample(`${name}_count`, labels, count),
        ];
      }),
  };
}

/** Read when it is asked for. */
export function gauge(name: string, help: string, values: readonly (readonly [Labels, number])[]): Family {
  return { name, help, kind: "gauge", lines: () => values.map(([labels, value]) => sample(name, labels, value)) };
}

/** A sum that something else keeps. */
export function total(name: string, help: string, value: number): Family {
  return { name, help, kind: "counter", lines: () => [sample(name, {}, value)] };
}

export function expose(families: readonly Family[]): string {
  const texts = families.map((family) => {
    const { name, help, kind } = family;
    return [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${kind}`, ...family.lines()].join("\n");
  });
  return `${texts.join("\n")}\n`;
}

function seriesOf<T>(begin: () => T) {
  const known = new Map<string, readonly [Labels, T]>();
  function find(labels: Labels, hasRoom: boolean): T | undefined {
    const key = JSON.stringify(labels);
    const found = known.get(key);
    if (found !== undefined || !hasRoom) return found?.[1];
    const value = begin();
    known.set(key, [labels, value]);
    return value;
  }
  return {
    of(labels: Labels): T {
      const rest = Object.fromEntries(Object.keys(labels).map((name) => [name, OTHER]));
      return find(labels, known.size < MAX_SERIES) ?? find(rest, true) ?? begin();
    },
    all: (): readonly (readonly [Labels, T])[] => [...known.values()],
  };
}

function sample(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`);
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${Number.isFinite(value) ? value : "NaN"}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
