/** A bar a day, by model, in greys: colours are for verdicts. What has no known price is a hatched cap of one height. */
import type { ReactNode } from "react";
import { line } from "../../text/shown.ts";
import { money, tokens } from "../../words/figures.ts";
import type { Entries } from "./usage.tsx";

export type Unit = "money" | "tokens";

interface ChartProps {
  readonly entries: Entries;
  readonly unit: Unit;
  readonly from: string | undefined;
  readonly to: string;
}

const HEIGHT = 180;
const CAP = 6;
const MOST_DAYS = 60;
const DAY_MS = 86_400_000;
const SHADES = 3;

export function Chart({ entries, unit, from, to }: ChartProps): ReactNode {
  const models = modelsOf(entries, unit);
  const days = daysOf(entries, from, to);
  const value = (entry: Entries[number]): number =>
    unit === "money" ? entry.costUsd : entry.usage.inputTokens + entry.usage.outputTokens;
  const sums = days.map((day) =>
    entries.filter(({ of }) => of.day === day).reduce((sum, entry) => sum + value(entry), 0),
  );
  const top = niceTop(Math.max(...sums, unit === "money" ? 0.02 : 1));
  const y = (amount: number): number => (amount / top) * (HEIGHT - 2 * CAP);
  const width = 1000 / days.length;
  const isUnknown = unit === "money" && entries.some(({ unpriced }) => unpriced > 0);
  // The foot of the scale is no sum: "$0.00" there would read as one where prices are unknown.
  const text = (amount: number): string =>
    amount === 0 ? "0" : unit === "money" ? money(amount) : tokens(Math.round(amount));
  return (
    <figure className="chart">
      <div className="plot">
        <ul className="ys" aria-hidden="true">
          {[0, 0.5, 1].map((share) => (
            <li key={share} style={{ top: HEIGHT - y(top * share) }}>
              {text(top * share)}
            </li>
          ))}
        </ul>
        <svg
          viewBox={`0 0 1000 ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`A bar a day, ${days[0]} to ${to}; the tables below say the same`}
        >
          <defs>
            <pattern id="hu" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
              <rect className="ph-u" width="1.6" height="4" />
            </pattern>
          </defs>
          {[0, 0.5, 1].map((share) => (
            <line
              key={share}
              className="g"
              x1="0"
              x2="1000"
              y1={HEIGHT - y(top * share)}
              y2={HEIGHT - y(top * share)}
            />
          ))}
          {days.map((day, index) => (
            <DayBar
              key={day}
              x={index * width + width * 0.27}
              width={width * 0.46}
              entries={entries.filter(({ of }) => of.day === day)}
              {...{ models, value, y }}
              hasCap={unit === "money"}
            />
          ))}
        </svg>
        <ol className="xs" aria-hidden="true">
          {days.map((day, index) =>
            days.length > 20 && index % 5 !== 0 ? null : (
              <li key={day} style={{ left: `${(index + 0.5) * (100 / days.length)}%` }}>
                {days.length > 20 ? day.slice(5) : Number(day.slice(8))}
              </li>
            ),
          )}
        </ol>
      </div>
      <figcaption>
        {models.slice(0, SHADES).map((model, index) => (
          <span key={model}>
            <i className={`sw m${index}`} />
            {line(model)}
          </span>
        ))}
        {models.length > SHADES ? <span>and {models.length - SHADES} more, in the last shade</span> : null}
        {isUnknown ? (
          <span className="say">
            <i className="sw un" />
            price unknown: more was spent, nobody knows how much
          </span>
        ) : null}
      </figcaption>
    </figure>
  );
}

interface DayProps {
  readonly x: number;
  readonly width: number;
  readonly entries: Entries;
  readonly models: readonly string[];
  readonly value: (entry: Entries[number]) => number;
  readonly y: (amount: number) => number;
  readonly hasCap: boolean;
}

function DayBar({ x, width, entries, models, value, y, hasCap }: DayProps): ReactNode {
  let at = HEIGHT;
  const parts = models.flatMap((model, index) => {
    const amount = entries.filter(({ of }) => of.model === model).reduce((sum, entry) => sum + value(entry), 0);
    if (amount === 0) return [];
    const height = Math.max(1, y(amount));
    at -= height;
    return [{ model, height, y: at, shade: Math.min(index, SHADES - 1) }];
  });
  const isUnknown = hasCap && entries.some(({ unpriced }) => unpriced > 0);
  return (
    <>
      {parts.map((part) => (
        <rect
          key={part.model}
          className={`m${part.shade}`}
          x={x}
          width={width}
          y={part.y}
          height={Math.max(0.5, part.height - 1)}
        />
      ))}
      {isUnknown ? <rect className="un" x={x} width={width} y={at - CAP - 1} height={CAP} /> : null}
    </>
  );
}

function modelsOf(entries: Entries, unit: Unit): readonly string[] {
  const sums = new Map<string, number>();
  for (const { of, costUsd, usage } of entries) {
    const model = of.model ?? "";
    sums.set(model, (sums.get(model) ?? 0) + (unit === "money" ? costUsd : usage.inputTokens + usage.outputTokens));
  }
  return [...sums].toSorted(([, a], [, b]) => b - a).map(([model]) => model);
}

function daysOf(entries: Entries, from: string | undefined, to: string): readonly string[] {
  const known = entries.flatMap(({ of }) => of.day ?? []).toSorted();
  const first = Date.parse(from ?? known[0] ?? to);
  const count = Math.min(MOST_DAYS, Math.round((Date.parse(to) - first) / DAY_MS) + 1);
  return Array.from({ length: count }, (_, index) =>
    new Date(Date.parse(to) - (count - 1 - index) * DAY_MS).toISOString().slice(0, 10),
  );
}

/** One, two or five of something, and not less than what is drawn. */
function niceTop(most: number): number {
  const unit = 10 ** Math.floor(Math.log10(most));
  return unit * ([1, 2, 5, 10].find((step) => step * unit >= most) ?? 10);
}
