/** The two lanes of wall time. A picture of the list beside it: screen readers get its one sentence and the list. */
import type { ReactNode } from "react";
import { clock } from "../../words/figures.ts";
import type { Lanes, Span, Tick } from "./lanes.ts";

const WIDTH = 1000;
/** Rather seen than exact: a call of a millisecond is one too. */
const MIN_WIDTH = 1.4;

interface ClothProps {
  readonly lanes: Lanes;
  readonly onPick?: ((key: string) => void) | undefined;
}

export function Cloth({ lanes, onPick }: ClothProps): ReactNode {
  const scale = WIDTH / (lanes.to - lanes.from);
  const x = (at: number): number => Math.max(0, Math.min(WIDTH, (at - lanes.from) * scale));
  return (
    <div className="weave">
      <div className="lanes" aria-hidden="true">
        <span>model</span>
        <span>tools</span>
      </div>
      <div className="cloth">
        <svg
          viewBox={`0 0 ${WIDTH} 32`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${lanes.sentence}, from ${clock(lanes.from)}`}
        >
          <defs>
            <pattern id="hs" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
              <rect className="ph-s" width="1.6" height="4" />
            </pattern>
            <pattern id="hy" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
              <rect className="ph-y" width="1.6" height="5" />
            </pattern>
          </defs>
          {lanes.spans.map((span, index) => (
            <Bar key={index} span={span} from={x(span.from)} to={x(span.to)} onPick={onPick} />
          ))}
        </svg>
        <Ticks lanes={lanes} x={x} />
      </div>
    </div>
  );
}

interface BarProps {
  readonly span: Span;
  readonly from: number;
  readonly to: number;
  readonly onPick: ((key: string) => void) | undefined;
}

function Bar({ span, from, to, onPick }: BarProps): ReactNode {
  const { key } = span;
  const pick = key === undefined || onPick === undefined ? {} : { onClick: () => onPick(key), className: "pick" };
  const width = Math.max(MIN_WIDTH, to - from);
  const box = { x: from, width };
  switch (span.kind) {
    case "plain":
      return (
        <g {...pick}>
          <rect
            className={span.lane === "model" ? "wm" : "wt"}
            {...box}
            y={span.lane === "model" ? 4 : 18}
            height="10"
          />
        </g>
      );
    case "failed":
      return (
        <g {...pick}>
          <rect className="wf" {...box} y="18" height="10" />
        </g>
      );
    case "hung":
      return (
        <g>
          <rect className="under" {...box} y="18" height="10" />
          <rect fill="url(#hs)" {...box} y="18" height="10" />
        </g>
      );
    case "asked":
      return <rect fill="url(#hy)" {...box} y="4" height="24" />;
    case "passed":
    case "rejected":
    case "verified":
      return (
        <g {...pick}>
          <rect className={`wc ${span.kind}`} {...box} width={Math.max(6, width)} y="4" height="24">
            <title>{span.kind === "passed" ? "checks passed" : span.kind}</title>
          </rect>
        </g>
      );
  }
}

/** Of the whole width, as a share. */
const LETTER = 0.55;

/** Names that would lie over each other are left out; their steps are in the list. */
function Ticks({ lanes, x }: { lanes: Lanes; x: (at: number) => number }): ReactNode {
  const shown: Tick[] = [];
  const places: (readonly [number, number])[] = [];
  // What has a colour says more than the number of a turn.
  for (const tick of lanes.ticks.toSorted((a, b) => Number(a.tone === "") - Number(b.tone === ""))) {
    const left = Math.min(x(tick.at) / 10, 100 - tick.text.length * LETTER);
    const right = left + tick.text.length * LETTER + 1;
    if (places.some(([from, to]) => left < to && right > from)) continue;
    places.push([left, right]);
    shown.push(tick);
  }
  return (
    <ol className="ticks" aria-hidden="true">
      {shown.map(({ at, text, tone }) => {
        const left = x(at) / 10;
        const style = left > 82 ? { right: 0 } : { left: `${left}%` };
        return (
          <li key={`${at}${text}`} style={style} className={tone}>
            {text}
          </li>
        );
      })}
    </ol>
  );
}
