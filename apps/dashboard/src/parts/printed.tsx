/** What a command printed; the newest first in sight while it runs. */
import { useMemo, type ReactNode } from "react";
import { printed } from "../text/sgr.ts";

const MOST_LINES = 2_000;

export function Printed({ text, isRunning }: { text: string; isRunning: boolean }): ReactNode {
  const { lines, dropped } = useMemo(() => printed(text), [text]);
  const from = Math.max(0, lines.length - MOST_LINES);
  return (
    <>
      {from === 0 ? null : <p className="cutmark">{from.toLocaleString("en")} lines above are not drawn here</p>}
      <pre className={isRunning ? "out tail" : "out"} tabIndex={0} aria-label="Output">
        {lines.slice(from).map((pieces, index) => (
          <span key={from + index} className="ln">
            {pieces.map(({ text: part, style }, at) =>
              style === "" ? (
                part
              ) : (
                <span key={at} className={style}>
                  {part}
                </span>
              ),
            )}
            {"\n"}
          </span>
        ))}
      </pre>
      {dropped === 0 ? null : (
        <p className="cutmark">
          {dropped} control sequences were left out: they move the cursor or change the terminal
        </p>
      )}
    </>
  );
}
